/** Reads the flat arrays of a scoring reply, in base64 or as lists of numbers. What the numbers must be it leaves to others. */

import { Base64Words } from "./base64_words.ts";
import { inconsistent } from "../sglang/engine_failure.ts";
import type { ScanExpectation, ScoreArrays } from "./scan_arrays.ts";
import { type ByteCursor, FLOAT32, FLOAT64, type Progress } from "./scan_cursor.ts";
import { FlatTops } from "./scan_flat_tops.ts";

/** What a field holds, and in which form. */
export interface FlatField {
  readonly holds: "logprobs" | "ids";
  readonly form: "base64" | "list";
}

/** The flat forms of the top lists. */
export const FLAT_FIELDS: ReadonlyMap<string, FlatField> = new Map([
  ["input_top_logprobs_val_flat", { holds: "logprobs", form: "list" }],
  ["input_top_logprobs_idx_flat", { holds: "ids", form: "list" }],
  ["input_top_logprobs_val_flat_b64", { holds: "logprobs", form: "base64" }],
  ["input_top_logprobs_idx_flat_b64", { holds: "ids", form: "base64" }],
]);

/** Within a text; in a list before its first number or end, before a number, after one; after the array. */
type Place = "text" | "first" | "number" | "after_number" | "over";

/** The flat arrays of one reply, one after the other. */
export class FlatReader {
  readonly #cursor: ByteCursor;
  readonly #tops: FlatTops;
  readonly #seen = new Set<FlatField["holds"]>();
  #holds: FlatField["holds"] = "logprobs";
  #words = new Base64Words();
  #place: Place = "over";

  constructor(expected: ScanExpectation, cursor: ByteCursor, arrays: ScoreArrays) {
    const { response, topK, mask, vocabSize } = expected;
    this.#cursor = cursor;
    this.#tops = new FlatTops(
      { positions: response.length, topK, mask, vocabSize },
      { indices: arrays.topkIndices, logprobs: arrays.topkLogprobs },
    );
  }

  /** Takes the array's first byte. */
  begin({ holds, form }: FlatField): void {
    if (this.#seen.has(holds)) throw inconsistent(`The engine's reply has the ${holds} of its top lists twice`);
    this.#seen.add(holds);
    this.#holds = holds;
    if (form === "base64") {
      this.#cursor.take('"', "a text");
      this.#words = new Base64Words();
      this.#place = "text";
    } else {
      this.#cursor.take("[", "a list");
      this.#place = "first";
    }
  }

  /** Whether a space would be one too many: within a text. */
  get isInText(): boolean {
    return this.#place === "text";
  }

  /** Progress with the array that was begun, as far as there are bytes. */
  step(): Progress {
    if (!(this.#place === "text" ? this.#textStep() : this.#listStep())) return "cut";
    return this.#place === "over" ? "over" : "taken";
  }

  /** Both arrays were whole, and what the reply's small fields tell of them agrees. */
  assertWhole(meta: ReadonlyMap<string, unknown>): void {
    this.#tops.assertWhole(meta);
  }

  #textStep(): boolean {
    const text = this.#cursor.takeText();
    const words = text === null ? null : this.#words.push(text);
    if (words === null && (text !== null || !this.#words.isWhole())) {
      throw inconsistent(`The ${this.#holds} of the engine's flat top lists are no base64 of 32-bit values`);
    }
    if (words === null) this.#place = "over";
    else if (this.#holds === "logprobs") this.#tops.takeLogprobWords(words);
    else this.#tops.takeIdWords(words);
    return true;
  }

  /** Numbers, as many as are whole. */
  #listStep(): boolean {
    const cursor = this.#cursor;
    if (this.#place === "after_number" || (this.#place === "first" && cursor.isNext("]"))) {
      this.#place = cursor.takeOneOf(",", "]") === "," ? "number" : "over";
      return true;
    }
    do {
      if (!cursor.skipSpace()) return false;
      const value = cursor.readNumber(this.#holds === "logprobs" ? FLOAT32 : FLOAT64);
      if (value === null) return false;
      if (this.#holds === "logprobs") this.#tops.takeLogprob(value);
      else this.#tops.takeId(value);
      this.#place = "after_number";
    } while (cursor.takeComma());
    return true;
  }
}
