/**
 * Reads a scoring reply of SGLang's `/generate` while its bytes come in: logprobs go into typed arrays, and no JSON tree
 * is made. It knows where in a reply what stands; it does not know HTTP or retries.
 */

import { inconsistent } from "../sglang/engine_failure.ts";
import { assertAgreement, type ScanExpectation, type ScoreArrays, scoreArrays } from "./scan_arrays.ts";
import { ByteCursor } from "./scan_cursor.ts";
import { FLAT_FIELDS, FlatReader } from "./scan_flat_arrays.ts";
import { type ScoreTable, TableReader } from "./scan_tables.ts";
import { failureOfAbort, isObject } from "../sglang/sglang_failure.ts";

/** What was read; `meta` is what else was asked to be kept. */
export interface ScannedReply extends ScoreArrays {
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

type Place =
  | "start"
  | "reply_key"
  | "reply_next"
  | "meta_key"
  | "meta_next"
  | "skip"
  | "keep"
  | "table"
  | "flat"
  | "end";

/** One reply. Push its bytes in any pieces, then `finish`. Lies are thrown as `engine_inconsistent` as soon as they show. */
export class ScoreScanner {
  readonly #expected: ScanExpectation;
  readonly #cursor = new ByteCursor();
  readonly #arrays: ScoreArrays;
  readonly #tables: TableReader;
  /** Set where the top lists come in a flat form. */
  #flat: FlatReader | null = null;
  readonly #small = new Map<string, unknown>();
  #place: Place = "start";
  #afterValue: Place = "reply_next";
  #field = "";

  constructor(expected: ScanExpectation) {
    this.#expected = expected;
    this.#arrays = scoreArrays(expected);
    this.#tables = new TableReader(expected, this.#cursor, this.#arrays);
  }

  /** Reads further bytes. They are not kept. */
  push(bytes: Uint8Array): void {
    const cursor = this.#cursor;
    cursor.push(bytes);
    // A step that finds its token cut off by the end of the bytes takes nothing; it is taken again with the next ones.
    while ((this.#isInValue() ? cursor.hasMore() : cursor.skipSpace()) && this.#step()) cursor.commit();
    cursor.keepRest();
  }

  /** The whole reply was pushed. An aborted one throws what it says; one that is not whole or not what was asked for, the lie. */
  finish(): ScannedReply {
    this.push(new Uint8Array([0x20]));
    const finish = this.#small.get("finish_reason");
    if (isObject(finish) && finish.type === "abort") throw failureOfAbort(finish);
    if (this.#place !== "end") throw inconsistent("The engine's reply is cut off", this.#tables.where());
    const { prompt, response, topK, tokenIds } = this.#expected;
    const counted = this.#small.get("prompt_tokens");
    if (typeof counted === "number" && counted !== prompt.length + response.length) {
      throw inconsistent(`The engine saw ${counted} tokens where ${prompt.length + response.length} were sent`);
    }
    this.#tables.assertRows("input_token_logprobs");
    if (this.#flat !== null) this.#flat.assertWhole(this.#small);
    else if (topK > 0) this.#tables.assertRows("input_top_logprobs");
    if (tokenIds.length > 0) this.#tables.assertRows("input_token_ids_logprobs");
    assertAgreement(this.#expected, this.#arrays);
    return { ...this.#arrays, meta: Object.fromEntries(this.#small) };
  }

  /** Whether a space may belong to a value, and is not passed over. */
  #isInValue(): boolean {
    return this.#place === "skip" || (this.#place === "flat" && this.#flat?.isInText === true);
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
      case "table":
      case "flat": {
        const progress = this.#place === "flat" ? this.#flat?.step() : this.#tables.step();
        if (progress === "over") this.#place = this.#afterValue;
        return progress !== "cut";
      }
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
    this.#place = inMeta ? this.#beginField(field) : "skip";
    if (field === "meta_info" && !inMeta && cursor.isNext("{")) {
      cursor.take("{", "an object");
      this.#place = "meta_key";
    }
    return true;
  }

  /** What becomes of a field of `meta_info`. A table or array that is null is not there. */
  #beginField(field: string): Place {
    const cursor = this.#cursor;
    if (SMALL_FIELDS.has(field)) return "keep";
    const flat = this.#expected.topK > 0 ? FLAT_FIELDS.get(field) : undefined;
    if (flat !== undefined && !cursor.isNext("n")) {
      this.#assertOneForm("input_top_logprobs", this.#tables.has("input_top_logprobs"));
      this.#flat ??= new FlatReader(this.#expected, cursor, this.#arrays);
      this.#flat.begin(flat);
      return "flat";
    }
    const table = this.#tableOf(field);
    if (table === null || !cursor.isNext("[")) return "skip";
    this.#assertOneForm(table, table === "input_top_logprobs" && this.#flat !== null);
    this.#tables.begin(table);
    return "table";
  }

  /** An engine gives its top lists nested or flat, not both. */
  #assertOneForm(table: ScoreTable, other: boolean): void {
    if (other) throw inconsistent(`The engine's reply has "${table}" nested and flat`);
  }

  #tableOf(field: string): ScoreTable | null {
    if (field === "input_token_logprobs") return field;
    if (field === "input_top_logprobs" && this.#expected.topK > 0) return field;
    return field === "input_token_ids_logprobs" && this.#expected.tokenIds.length > 0 ? field : null;
  }
}
