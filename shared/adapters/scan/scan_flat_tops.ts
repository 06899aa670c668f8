/** Top lists that come as two flat arrays, logprobs and ids, row by row. It checks what it is given and knows no JSON. */

import { inconsistent } from "../sglang/engine_failure.ts";

/** What the lists are held to. */
export interface FlatTopsExpectation {
  /** R rows. */
  readonly positions: number;
  readonly topK: number;
  /** R bits, or null: rows with 0 are checked but not kept. */
  readonly mask: Uint8Array | null;
  readonly vocabSize: number;
}

/** Where the kept rows go. */
export interface TopLists {
  readonly indices: Int32Array;
  readonly logprobs: Float32Array;
}

/** One reply's. Float32 values come as they were computed; nothing is lost against the nested form. */
export class FlatTops {
  readonly #expected: FlatTopsExpectation;
  readonly #into: TopLists;
  readonly #logprobPlace: Place;
  readonly #idPlace: Place;
  /** Per id, one more than the last row that had it: no row may name an id twice. */
  readonly #seenInRow: Uint32Array;
  #previous = Infinity;

  constructor(expected: FlatTopsExpectation, into: TopLists) {
    this.#expected = expected;
    this.#into = into;
    this.#logprobPlace = new Place(expected);
    this.#idPlace = new Place(expected);
    this.#seenInRow = new Uint32Array(expected.vocabSize);
  }

  /** The next logprob. Throws `engine_inconsistent`, as all of these. */
  takeLogprob(value: number): void {
    const place = this.#logprobPlace;
    const logprob = Math.fround(value);
    place.assertRoom();
    if (!Number.isFinite(logprob)) throw inconsistent(`Score ${place.row + 1} is ${logprob}`, place.where());
    if (place.entry > 0 && logprob > this.#previous) throw inconsistent("A top list is not sorted", place.where());
    this.#previous = logprob;
    if (place.target >= 0) this.#into.logprobs[place.target] = logprob;
    place.advance();
  }

  /** The next id. */
  takeId(id: number): void {
    const place = this.#idPlace;
    place.assertRoom();
    if (!Number.isInteger(id) || id < 0 || id >= this.#expected.vocabSize) {
      throw inconsistent(`Id ${id} is outside the vocabulary of ${this.#expected.vocabSize}`, place.where());
    }
    const mark = place.row + 1;
    if (this.#seenInRow[id] === mark) throw inconsistent(`A top list has id ${id} twice`, place.where());
    this.#seenInRow[id] = mark;
    if (place.target >= 0) this.#into.indices[place.target] = id;
    place.advance();
  }

  /** Little-endian float32 values. */
  takeLogprobWords(words: DataView): void {
    for (let at = 0; at < words.byteLength; at += 4) this.takeLogprob(words.getFloat32(at, true));
  }

  /** Little-endian int32 values. */
  takeIdWords(words: DataView): void {
    for (let at = 0; at < words.byteLength; at += 4) this.takeId(words.getInt32(at, true));
  }

  /** Both arrays have all R rows, and what the reply's small fields tell of them agrees. */
  assertWhole(meta: ReadonlyMap<string, unknown>): void {
    const { positions, topK } = this.#expected;
    this.#logprobPlace.assertEnd();
    this.#idPlace.assertEnd();
    // The first position has no list; it is told as a prefix and is not in the arrays.
    const prefix = meta.get("input_top_logprobs_null_prefix");
    if (prefix !== 1) throw inconsistent(`The engine's flat top lists begin after ${String(prefix)} positions, not 1`);
    const shape = meta.get("input_top_logprobs_shape");
    const [rows, width] = Array.isArray(shape) ? shape : [];
    // Rows are those of the arrays; the form's first version counted the prefix too.
    if ((rows !== positions && rows !== positions + 1) || width !== topK) {
      throw inconsistent(`The engine's flat top lists are ${JSON.stringify(shape)}, not [${positions},${topK}]`);
    }
    for (const [name, expected] of [["val", "float32"], ["idx", "int32"]] as const) {
      const type = meta.get(`input_top_logprobs_${name}_flat_b64_dtype`);
      if (type === undefined || type === expected) continue;
      throw inconsistent(`The engine's flat top lists are of ${String(type)}, not ${expected}`);
    }
  }
}

/** A place in one flat array. */
class Place {
  row = 0;
  entry = 0;
  /** Where in the kept arrays, or -1. */
  target: number;
  readonly #expected: FlatTopsExpectation;
  #kept = 0;

  constructor(expected: FlatTopsExpectation) {
    this.#expected = expected;
    this.target = this.#isKept() ? 0 : -1;
  }

  assertRoom(): void {
    const { positions } = this.#expected;
    if (this.row < positions) return;
    throw inconsistent(`The engine's flat top lists have more than ${positions} rows`, this.where());
  }

  assertEnd(): void {
    const { positions } = this.#expected;
    if (this.row === positions) return;
    throw inconsistent(`The engine's flat top lists end in row ${this.row} of ${positions}`, this.where());
  }

  advance(): void {
    if (this.target >= 0) this.target++;
    if (++this.entry < this.#expected.topK) return;
    this.entry = 0;
    if (this.target >= 0) this.#kept++;
    this.row++;
    this.target = this.#isKept() ? this.#kept * this.#expected.topK : -1;
  }

  /** Counted as in the nested form, whose position 0 has no list. */
  where(): { readonly position: number } {
    return { position: this.row + 1 };
  }

  #isKept(): boolean {
    const { mask } = this.#expected;
    return mask === null || mask[this.row] === 1;
  }
}
