/**
 * Reads a scoring reply of SGLang's `/generate` while its bytes come in: logprobs go into typed arrays, and no JSON tree
 * is made. It knows the index law of input logprobs and checks every position; it does not know HTTP or retries.
 */

import type { TeacherScoreRequest } from "../ports/teacher.ts";
import { Base64Words } from "./base64_words.ts";
import { inconsistent } from "./engine_failure.ts";
import { CompactRowReader } from "./scan_compact_row.ts";
import { ByteCursor } from "./scan_cursor.ts";
import { FlatTops } from "./scan_flat_tops.ts";
import { failureOfAbort, isObject } from "./sglang_failure.ts";

/** What a reply is checked against: the request, in the vocabulary that ids are in. */
export type ScanExpectation = Omit<TeacherScoreRequest, "rid"> & { readonly vocabSize: number };

/** What was read. Arrays as in {@linkcode TeacherScores}; `meta` is what else was asked to be kept. */
export interface ScannedReply {
  readonly logprobs: Float64Array;
  readonly topkIndices: Int32Array;
  readonly topkLogprobs: Float32Array;
  readonly tokenIdsLogprobs: Float32Array;
  readonly meta: Readonly<Record<string, unknown>>;
}

/** Fields of `meta_info` that are small and kept whole. */
const SMALL_FIELDS: ReadonlySet<string> = new Set([
  "finish_reason",
  "weight_version",
  "prompt_tokens",
  "output_top_logprobs",
  "output_token_ids_logprobs",
  "input_top_logprobs_shape",
  "input_top_logprobs_null_prefix",
  "input_top_logprobs_val_flat_b64_dtype",
  "input_top_logprobs_idx_flat_b64_dtype",
]);
/** The flat forms of the top lists: what each holds, and whether as base64 or as a list of numbers. */
const FLAT_FIELDS: ReadonlyMap<string, FlatField> = new Map([
  ["input_top_logprobs_val_flat", { holds: "logprobs", form: "list" }],
  ["input_top_logprobs_idx_flat", { holds: "ids", form: "list" }],
  ["input_top_logprobs_val_flat_b64", { holds: "logprobs", form: "base64" }],
  ["input_top_logprobs_idx_flat_b64", { holds: "ids", form: "base64" }],
]);
/** Engine and trainer may compute the two ways to a logprob in another order of sums. */
const SAME_LOGPROB = 1e-2;

const FLOAT32 = { float32: true };
const FLOAT64 = { float32: false };

interface FlatField {
  readonly holds: "logprobs" | "ids";
  readonly form: "base64" | "list";
}

type Table = "input_token_logprobs" | "input_top_logprobs" | "input_token_ids_logprobs";
type Place =
  | "start"
  | "reply_key"
  | "reply_next"
  | "meta_key"
  | "meta_next"
  | "skip"
  | "keep"
  | "flat_text"
  | "flat_list"
  | "flat_number"
  | "flat_next"
  | "end";
/** Within a table: before it, before a row, within a row before an entry, after an entry, after a row. */
type TablePlace = "open" | "first_row" | "row" | "entry" | "after_entry" | "after_row";

/** One reply. Push its bytes in any pieces, then `finish`. Lies are thrown as `engine_inconsistent` as soon as they show. */
export class ScoreScanner {
  readonly #expected: ScanExpectation;
  readonly #cursor = new ByteCursor();
  readonly #logprobs: Float64Array;
  readonly #topkIndices: Int32Array;
  readonly #topkLogprobs: Float32Array;
  readonly #tokenIdsLogprobs: Float32Array;
  /** Per id, the mark of the last row that had it: no row may name an id twice. */
  readonly #seenInRow: Uint32Array;
  readonly #compactRow: CompactRowReader;
  /** Where a row goes that is checked but not kept. */
  readonly #unkeptIndices: Int32Array;
  readonly #unkeptLogprobs: Float32Array;
  readonly #rowsOf = new Map<Table, number>();
  readonly #small = new Map<string, unknown>();
  /** Set where the top lists come in a flat form, and the array that is being read. */
  #flatTops: FlatTops | null = null;
  readonly #flatSeen = new Set<FlatField["holds"]>();
  #flatHolds: FlatField["holds"] = "logprobs";
  #words = new Base64Words();
  #place: Place = "start";
  #afterValue: Place = "reply_next";
  #field = "";
  #table: Table | null = null;
  #tablePlace: TablePlace = "open";
  /** Rows read of the table, and of those the ones that are kept; entries read of the row. */
  #row = 0;
  #kept = 0;
  #entry = 0;
  #previous = 0;
  #mark = 0;

  constructor(expected: ScanExpectation) {
    const { response, mask, topK, tokenIds } = expected;
    const positions = mask === null ? response.length : mask.reduce((sum, bit) => sum + bit, 0);
    this.#expected = expected;
    this.#logprobs = new Float64Array(positions);
    this.#topkIndices = new Int32Array(positions * topK);
    this.#topkLogprobs = new Float32Array(positions * topK);
    this.#tokenIdsLogprobs = new Float32Array(positions * tokenIds.length);
    this.#seenInRow = new Uint32Array(topK > 0 ? expected.vocabSize : 0);
    this.#compactRow = new CompactRowReader({ topK, vocabSize: expected.vocabSize, seenInRow: this.#seenInRow });
    this.#unkeptIndices = new Int32Array(topK);
    this.#unkeptLogprobs = new Float32Array(topK);
  }

  /** Reads further bytes. They are not kept. */
  push(bytes: Uint8Array): void {
    const cursor = this.#cursor;
    cursor.push(bytes);
    // A step that finds its token cut off by the end of the bytes takes nothing; it is taken again with the next ones.
    while ((this.#place === "flat_text" ? cursor.hasMore() : cursor.skipSpace()) && this.#step()) cursor.commit();
    cursor.keepRest();
  }

  /** The whole reply was pushed. An aborted one throws what it says; one that is not whole or not what was asked for, the lie. */
  finish(): ScannedReply {
    this.push(new Uint8Array([0x20]));
    const finish = this.#small.get("finish_reason");
    if (isObject(finish) && finish.type === "abort") throw failureOfAbort(finish);
    if (this.#place !== "end") throw inconsistent("The engine's reply is cut off", this.#where());
    const { prompt, response, topK, tokenIds } = this.#expected;
    const counted = this.#small.get("prompt_tokens");
    if (typeof counted === "number" && counted !== prompt.length + response.length) {
      throw inconsistent(`The engine saw ${counted} tokens where ${prompt.length + response.length} were sent`);
    }
    this.#assertRows("input_token_logprobs");
    if (topK > 0 && this.#flatTops === null) this.#assertRows("input_top_logprobs");
    this.#flatTops?.assertWhole(this.#small);
    if (tokenIds.length > 0) this.#assertRows("input_token_ids_logprobs");
    this.#assertAgreement();
    return {
      logprobs: this.#logprobs,
      topkIndices: this.#topkIndices,
      topkLogprobs: this.#topkLogprobs,
      tokenIdsLogprobs: this.#tokenIdsLogprobs,
      meta: Object.fromEntries(this.#small),
    };
  }

  /** One token's worth of progress; false where more bytes are needed. */
  #step(): boolean {
    const cursor = this.#cursor;
    switch (this.#place) {
      case "start":
        cursor.take("{", "an object");
        this.#place = "reply_key";
        return true;
      case "reply_key":
      case "meta_key":
        return this.#key();
      case "reply_next":
      case "meta_next": {
        const more = cursor.takeOneOf(",", "}");
        if (more === ",") this.#place = this.#place === "reply_next" ? "reply_key" : "meta_key";
        else this.#place = this.#place === "reply_next" ? "end" : "reply_next";
        return true;
      }
      case "skip":
        if (this.#table !== null) return this.#tableStep(this.#table);
        if (!cursor.skipValue()) return false;
        this.#place = this.#afterValue;
        return true;
      case "keep": {
        const read = cursor.readValue();
        if (read === null) return false;
        this.#small.set(this.#field, read.value);
        this.#place = this.#afterValue;
        return true;
      }
      case "flat_text":
        return this.#flatText();
      case "flat_list":
      case "flat_number":
      case "flat_next":
        return this.#flatList();
      case "end":
        throw inconsistent("The engine went on after its reply");
    }
  }

  /** A key, its colon, and what is to become of its value. */
  #key(): boolean {
    const cursor = this.#cursor;
    const inMeta = this.#place === "meta_key";
    const field = cursor.keyText();
    if (field === null) return false;
    this.#field = field;
    this.#afterValue = inMeta ? "meta_next" : "reply_next";
    this.#table = null;
    if (!inMeta) {
      if (field !== "meta_info" || !cursor.isNext("{")) this.#place = "skip";
      else {
        cursor.take("{", "an object");
        this.#place = "meta_key";
      }
      return true;
    }
    const flat = this.#expected.topK > 0 ? FLAT_FIELDS.get(field) : undefined;
    if (flat !== undefined && !cursor.isNext("n")) return this.#beginFlat(flat);
    const table = this.#tableOf(field);
    this.#place = table === null && SMALL_FIELDS.has(field) ? "keep" : "skip";
    // A table that is null is not there.
    if (table === null || !cursor.isNext("[")) return true;
    if (this.#rowsOf.has(table) || (table === "input_top_logprobs" && this.#flatTops !== null)) {
      throw inconsistent(`The engine's reply has "${table}" twice`);
    }
    this.#table = table;
    this.#tablePlace = "open";
    this.#row = this.#kept = 0;
    return true;
  }

  /** The top lists in a flat form: an engine gives the nested one or this. */
  #beginFlat({ holds, form }: FlatField): boolean {
    if (this.#flatSeen.has(holds) || this.#rowsOf.has("input_top_logprobs")) {
      throw inconsistent(`The engine's reply has "input_top_logprobs" twice`);
    }
    this.#flatSeen.add(holds);
    this.#flatHolds = holds;
    const { response, topK, mask, vocabSize } = this.#expected;
    this.#flatTops ??= new FlatTops(
      { positions: response.length, topK, mask, vocabSize },
      { indices: this.#topkIndices, logprobs: this.#topkLogprobs },
    );
    if (form === "base64") {
      this.#cursor.take('"', "a text");
      this.#words = new Base64Words();
      this.#place = "flat_text";
    } else {
      this.#cursor.take("[", "a list");
      this.#place = "flat_list";
    }
    return true;
  }

  /** What there is of a base64 text. */
  #flatText(): boolean {
    const text = this.#cursor.takeText();
    const words = text === null ? null : this.#words.push(text);
    if (words === null && (text !== null || !this.#words.isWhole())) {
      throw inconsistent(`The engine's "${this.#field}" is no base64 of 32-bit values`);
    }
    if (words === null) this.#place = this.#afterValue;
    else if (this.#flatHolds === "logprobs") this.#flatTops?.takeLogprobWords(words);
    else this.#flatTops?.takeIdWords(words);
    return true;
  }

  /** Numbers of a flat list, as many as are whole. */
  #flatList(): boolean {
    const cursor = this.#cursor;
    if (this.#place === "flat_next" || (this.#place === "flat_list" && cursor.isNext("]"))) {
      this.#place = cursor.takeOneOf(",", "]") === "," ? "flat_number" : this.#afterValue;
      return true;
    }
    do {
      if (!cursor.skipSpace()) return false;
      const value = cursor.readNumber(this.#flatHolds === "logprobs" ? FLOAT32 : FLOAT64);
      if (value === null) return false;
      if (this.#flatHolds === "logprobs") this.#flatTops?.takeLogprob(value);
      else this.#flatTops?.takeId(value);
      this.#place = "flat_next";
    } while (cursor.takeComma());
    return true;
  }

  #tableOf(field: string): Table | null {
    if (field === "input_token_logprobs") return field;
    if (field === "input_top_logprobs" && this.#expected.topK > 0) return field;
    return field === "input_token_ids_logprobs" && this.#expected.tokenIds.length > 0 ? field : null;
  }

  #tableStep(table: Table): boolean {
    const cursor = this.#cursor;
    switch (this.#tablePlace) {
      case "open":
        cursor.take("[", "a list");
        this.#tablePlace = "first_row";
        return true;
      case "first_row":
        if (cursor.isNext("]")) {
          cursor.take("]", "the end of a list");
          this.#endTable(table);
          return true;
        }
        this.#tablePlace = "row";
        return true;
      case "row": {
        if (this.#row > this.#expected.response.length) {
          throw inconsistent(`The engine's "${table}" has more than ${this.#row} positions`, this.#where());
        }
        if (table === "input_token_logprobs") return this.#tokenEntry();
        if (table === "input_top_logprobs" && this.#compactRows()) return true;
        if (cursor.isNext("[")) {
          if (this.#row === 0) throw inconsistent("The first position has logprobs where none can be", this.#where());
          cursor.take("[", "a list");
          this.#entry = 0;
          this.#previous = Infinity;
          this.#mark++;
          this.#tablePlace = cursor.isNext("]") ? "after_entry" : "entry";
          return true;
        }
        const isNull = cursor.takeNull();
        if (isNull === null) return false;
        if (!isNull || this.#row > 0) throw inconsistent(`A row of "${table}" is not a list`, this.#where());
        this.#endRow();
        return true;
      }
      case "entry":
        return table === "input_top_logprobs" ? this.#topEntries() : this.#tokenIdEntry();
      case "after_entry":
        if (cursor.isNext(",")) {
          cursor.take(",", "an entry");
          this.#tablePlace = "entry";
          return true;
        }
        cursor.take("]", "the end of a row");
        this.#assertEntries(table);
        this.#endRow();
        return true;
      case "after_row":
        if (cursor.takeOneOf(",", "]") === ",") this.#tablePlace = "row";
        else this.#endTable(table);
        return true;
    }
  }

  /** `[logprob, id, text]` of the token at this position. */
  #tokenEntry(): boolean {
    const cursor = this.#cursor;
    const { prompt, response } = this.#expected;
    if (!cursor.readEntry(FLOAT64)) return false;
    const wanted = this.#row === 0 ? prompt[prompt.length - 1] : response[this.#row - 1];
    if (cursor.id !== wanted) {
      throw inconsistent(`Score ${this.#row} is of id ${cursor.id}, not of ${String(wanted)}`, this.#where());
    }
    if (this.#row === 0) {
      if (!cursor.isNull) throw inconsistent("The first score has a logprob where none can be", this.#where());
    } else {
      this.#assertLogprob();
      if (this.#isKept()) this.#logprobs[this.#kept] = cursor.logprob;
    }
    this.#endRow();
    return true;
  }

  /** Whole rows in the engines' own form, as many as there are: this is where most of a reply's bytes are. */
  #compactRows(): boolean {
    const cursor = this.#cursor;
    const { topK, response } = this.#expected;
    let anyRow = false;
    while (this.#row > 0 && this.#row <= response.length) {
      const end = this.#isKept()
        ? this.#readCompact(this.#topkIndices, this.#topkLogprobs, this.#kept * topK)
        : this.#readCompact(this.#unkeptIndices, this.#unkeptLogprobs, 0);
      if (end < 0) break;
      cursor.moveTo(end);
      this.#endRow();
      anyRow = true;
      if (!cursor.takeComma()) break;
      this.#tablePlace = "row";
    }
    return anyRow;
  }

  #readCompact(indices: Int32Array, logprobs: Float32Array, first: number): number {
    const { view, at } = this.#cursor;
    return this.#compactRow.read(view, at, ++this.#mark, indices, logprobs, first);
  }

  /** Entries of a top list, as many as are whole. */
  #topEntries(): boolean {
    const cursor = this.#cursor;
    const { topK, vocabSize } = this.#expected;
    const isKept = this.#isKept();
    do {
      if (!cursor.readEntry(FLOAT32)) return false;
      this.#assertLogprob();
      const { id } = cursor;
      // Order is that of what is kept.
      const logprob = Math.fround(cursor.logprob);
      if (this.#entry >= topK) throw inconsistent(`A top list has more than ${topK} entries`, this.#where());
      if (id >= vocabSize) throw inconsistent(`Id ${id} is outside the vocabulary of ${vocabSize}`, this.#where());
      if (logprob > this.#previous) throw inconsistent("A top list is not sorted", this.#where());
      if (this.#seenInRow[id] === this.#mark) throw inconsistent(`A top list has id ${id} twice`, this.#where());
      this.#seenInRow[id] = this.#mark;
      this.#previous = logprob;
      if (isKept) {
        const at = this.#kept * topK + this.#entry;
        this.#topkIndices[at] = id;
        this.#topkLogprobs[at] = logprob;
      }
      this.#entry++;
      this.#tablePlace = "after_entry";
    } while (cursor.takeComma());
    return true;
  }

  #tokenIdEntry(): boolean {
    const cursor = this.#cursor;
    if (!cursor.readEntry(FLOAT32)) return false;
    this.#assertLogprob();
    const { tokenIds } = this.#expected;
    const wanted = tokenIds[this.#entry];
    if (cursor.id !== wanted) {
      throw inconsistent(`A logprob is of id ${cursor.id} where ${String(wanted)} was asked for`, this.#where());
    }
    if (this.#isKept()) this.#tokenIdsLogprobs[this.#kept * tokenIds.length + this.#entry] = cursor.logprob;
    this.#entry++;
    this.#tablePlace = "after_entry";
    return true;
  }

  #assertLogprob(): void {
    const { isNull, logprob } = this.#cursor;
    if (!isNull && Number.isFinite(Math.fround(logprob))) return;
    throw inconsistent(`Score ${this.#row} is ${isNull ? "null" : logprob}`, this.#where());
  }

  #assertEntries(table: Table): void {
    const wanted = table === "input_top_logprobs" ? this.#expected.topK : this.#expected.tokenIds.length;
    if (this.#entry === wanted) return;
    throw inconsistent(`A row of "${table}" has ${this.#entry} entries, not ${wanted}`, this.#where());
  }

  #isKept(): boolean {
    const { mask } = this.#expected;
    return mask === null || mask[this.#row - 1] === 1;
  }

  #endRow(): void {
    if (this.#row > 0 && this.#isKept()) this.#kept++;
    this.#row++;
    this.#tablePlace = "after_row";
  }

  #endTable(table: Table): void {
    this.#rowsOf.set(table, this.#row);
    this.#table = null;
    this.#place = this.#afterValue;
  }

  #assertRows(table: Table): void {
    const rows = this.#rowsOf.get(table);
    const wanted = this.#expected.response.length + 1;
    if (rows === undefined) throw inconsistent(`The engine's reply has no "${table}"`);
    if (rows === wanted) return;
    throw inconsistent(`The engine scored ${rows} positions where ${wanted} were asked for`, { position: rows });
  }

  /** The token's own logprob and the top list must tell one distribution. */
  #assertAgreement(): void {
    const { response, mask, topK } = this.#expected;
    if (topK === 0) return;
    let kept = 0;
    for (let k = 0; k < response.length; k++) {
      if (mask !== null && mask[k] !== 1) continue;
      const logprob = this.#logprobs[kept]!;
      const tolerance = SAME_LOGPROB * Math.max(1, Math.abs(logprob));
      const from = kept * topK;
      const at = this.#topkIndices.subarray(from, from + topK).indexOf(response[k]!);
      const last = this.#topkLogprobs[from + topK - 1]!;
      const agrees = at < 0
        ? logprob <= last + tolerance
        : Math.abs(this.#topkLogprobs[from + at]! - logprob) <= tolerance;
      if (!agrees) {
        throw inconsistent(`Score ${k + 1} and its top list tell different things of id ${response[k]}`, {
          position: k + 1,
        });
      }
      kept++;
    }
  }

  #where(): Record<string, unknown> {
    return this.#table === null && this.#row === 0 ? {} : { position: this.#row };
  }
}
