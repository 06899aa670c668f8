/** Reads the nested tables of a scoring reply, row by row, and checks every position. It does not know where a table stands. */

import { inconsistent } from "../sglang/engine_failure.ts";
import type { ScanExpectation, ScoreArrays } from "./scan_arrays.ts";
import { CompactRowReader } from "./scan_compact_row.ts";
import { type ByteCursor, FLOAT32, FLOAT64, type Progress } from "./scan_cursor.ts";

/** A table of `meta_info`: each entry or row is of one position. */
export type ScoreTable = "input_token_logprobs" | "input_top_logprobs" | "input_token_ids_logprobs";

/** Before the table, before a row, within a row before an entry, after an entry, after a row, after the table. */
type Place = "open" | "first_row" | "row" | "entry" | "after_entry" | "after_row" | "over";

/** All tables of one reply, one after the other. Lies are thrown as `inconsistent` as soon as they show. */
export class TableReader {
  readonly #expected: ScanExpectation;
  readonly #cursor: ByteCursor;
  readonly #arrays: ScoreArrays;
  /** Per id, the mark of the last row that had it: no row may name an id twice. */
  readonly #seenInRow: Uint32Array;
  readonly #compactRow: CompactRowReader;
  /** Where a row goes that is checked but not kept. */
  readonly #unkeptIndices: Int32Array;
  readonly #unkeptLogprobs: Float32Array;
  readonly #rowsOf = new Map<ScoreTable, number>();
  #table: ScoreTable | null = null;
  #place: Place = "over";
  /** Rows read of the table, and of those the ones that are kept; entries read of the row. */
  #row = 0;
  #kept = 0;
  #entry = 0;
  #previous = 0;
  #mark = 0;

  constructor(expected: ScanExpectation, cursor: ByteCursor, arrays: ScoreArrays) {
    const { topK, vocabSize } = expected;
    this.#expected = expected;
    this.#cursor = cursor;
    this.#arrays = arrays;
    this.#seenInRow = new Uint32Array(topK > 0 ? vocabSize : 0);
    this.#compactRow = new CompactRowReader({ topK, vocabSize, seenInRow: this.#seenInRow });
    this.#unkeptIndices = new Int32Array(topK);
    this.#unkeptLogprobs = new Float32Array(topK);
  }

  /** Whether the reply has had this table. */
  has(table: ScoreTable): boolean {
    return this.#rowsOf.has(table);
  }

  /** The table whose `[` is next. */
  begin(table: ScoreTable): void {
    if (this.has(table)) throw inconsistent(`The engine's reply has "${table}" twice`);
    this.#table = table;
    this.#place = "open";
    this.#row = this.#kept = 0;
  }

  /** One token's worth of progress with the table that was begun. */
  step(): Progress {
    if (this.#table !== null && !this.#step(this.#table)) return "cut";
    return this.#place === "over" ? "over" : "taken";
  }

  /** The table was there and had every position. */
  assertRows(table: ScoreTable): void {
    const rows = this.#rowsOf.get(table);
    const wanted = this.#expected.response.length + 1;
    if (rows === undefined) throw inconsistent(`The engine's reply has no "${table}"`);
    if (rows === wanted) return;
    throw inconsistent(`The engine scored ${rows} positions where ${wanted} were asked for`, { position: rows });
  }

  /** The position that is read, as details of a failure. */
  where(): Record<string, unknown> {
    return this.#table === null && this.#row === 0 ? {} : { position: this.#row };
  }

  #step(table: ScoreTable): boolean {
    const cursor = this.#cursor;
    switch (this.#place) {
      case "open":
        cursor.take("[", "a list");
        this.#place = "first_row";
        return true;
      case "first_row":
        if (cursor.isNext("]")) {
          cursor.take("]", "the end of a list");
          this.#end(table);
          return true;
        }
        this.#place = "row";
        return true;
      case "row": {
        if (this.#row > this.#expected.response.length) {
          throw inconsistent(`The engine's "${table}" has more than ${this.#row} positions`, this.where());
        }
        if (table === "input_token_logprobs") return this.#tokenEntry();
        if (table === "input_top_logprobs" && this.#compactRows()) return true;
        if (cursor.isNext("[")) {
          if (this.#row === 0) throw inconsistent("The first position has logprobs where none can be", this.where());
          cursor.take("[", "a list");
          this.#entry = 0;
          this.#previous = Infinity;
          this.#mark++;
          this.#place = cursor.isNext("]") ? "after_entry" : "entry";
          return true;
        }
        const isNull = cursor.takeNull();
        if (isNull === null) return false;
        if (!isNull || this.#row > 0) throw inconsistent(`A row of "${table}" is not a list`, this.where());
        this.#endRow();
        return true;
      }
      case "entry":
        return table === "input_top_logprobs" ? this.#topEntries() : this.#tokenIdEntry();
      case "after_entry":
        if (cursor.isNext(",")) {
          cursor.take(",", "an entry");
          this.#place = "entry";
          return true;
        }
        cursor.take("]", "the end of a row");
        this.#assertEntries(table);
        this.#endRow();
        return true;
      case "after_row":
        if (cursor.takeOneOf(",", "]") === ",") this.#place = "row";
        else this.#end(table);
        return true;
      case "over":
        throw new Error("No table was begun");
    }
  }

  /** `[logprob, id, text]` of the token at this position. */
  #tokenEntry(): boolean {
    const cursor = this.#cursor;
    const { prompt, response } = this.#expected;
    if (!cursor.readEntry(FLOAT64)) return false;
    const wanted = this.#row === 0 ? prompt[prompt.length - 1] : response[this.#row - 1];
    if (cursor.id !== wanted) {
      throw inconsistent(`Score ${this.#row} is of id ${cursor.id}, not of ${String(wanted)}`, this.where());
    }
    if (this.#row === 0) {
      if (!cursor.isNull) throw inconsistent("The first score has a logprob where none can be", this.where());
    } else {
      this.#assertLogprob();
      if (this.#isKept()) this.#arrays.logprobs[this.#kept] = cursor.logprob;
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
        ? this.#readCompact(this.#arrays.topkIndices, this.#arrays.topkLogprobs, this.#kept * topK)
        : this.#readCompact(this.#unkeptIndices, this.#unkeptLogprobs, 0);
      if (end < 0) break;
      cursor.moveTo(end);
      this.#endRow();
      anyRow = true;
      if (!cursor.takeComma()) break;
      this.#place = "row";
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
      if (this.#entry >= topK) throw inconsistent(`A top list has more than ${topK} entries`, this.where());
      if (id >= vocabSize) throw inconsistent(`Id ${id} is outside the vocabulary of ${vocabSize}`, this.where());
      if (logprob > this.#previous) throw inconsistent("A top list is not sorted", this.where());
      if (this.#seenInRow[id] === this.#mark) throw inconsistent(`A top list has id ${id} twice`, this.where());
      this.#seenInRow[id] = this.#mark;
      this.#previous = logprob;
      if (isKept) {
        const at = this.#kept * topK + this.#entry;
        this.#arrays.topkIndices[at] = id;
        this.#arrays.topkLogprobs[at] = logprob;
      }
      this.#entry++;
      this.#place = "after_entry";
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
      throw inconsistent(`A logprob is of id ${cursor.id} where ${String(wanted)} was asked for`, this.where());
    }
    if (this.#isKept()) this.#arrays.tokenIdsLogprobs[this.#kept * tokenIds.length + this.#entry] = cursor.logprob;
    this.#entry++;
    this.#place = "after_entry";
    return true;
  }

  #assertLogprob(): void {
    const { isNull, logprob } = this.#cursor;
    if (!isNull && Number.isFinite(Math.fround(logprob))) return;
    throw inconsistent(`Score ${this.#row} is ${isNull ? "null" : logprob}`, this.where());
  }

  #assertEntries(table: ScoreTable): void {
    const wanted = table === "input_top_logprobs" ? this.#expected.topK : this.#expected.tokenIds.length;
    if (this.#entry === wanted) return;
    throw inconsistent(`A row of "${table}" has ${this.#entry} entries, not ${wanted}`, this.where());
  }

  #isKept(): boolean {
    const { mask } = this.#expected;
    return mask === null || mask[this.#row - 1] === 1;
  }

  #endRow(): void {
    if (this.#row > 0 && this.#isKept()) this.#kept++;
    this.#row++;
    this.#place = "after_row";
  }

  #end(table: ScoreTable): void {
    this.#rowsOf.set(table, this.#row);
    this.#table = null;
    this.#place = "over";
  }
}
