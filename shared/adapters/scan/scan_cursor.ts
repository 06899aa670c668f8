/** A place in JSON bytes that come in pieces. It reads single tokens, and does not know what they mean. */

import { NumberReader } from "./scan_number.ts";
import { inconsistent } from "../sglang/engine_failure.ts";

const OPEN = 91;
const CLOSE = 93;
const COMMA = 44;
const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;
const LETTER_N = 110;
const NULL = [110, 117, 108, 108];
/** The longest token or kept value; a longer one is none that a reply has. */
const LONGEST_BYTES = 1024 * 1024;

/** What came of a step: something was read, the bytes end before its end, or it was the last one. */
export type Progress = "taken" | "cut" | "over";

/** How exactly a number is wanted; see {@linkcode NumberReader}. */
export const FLOAT32 = { float32: true } as const;
/** As it is written. */
export const FLOAT64 = { float32: false } as const;

/** Bytes, and a place in them. What is read is final once `commit` was called; `keepRest` keeps what is not. */
export class ByteCursor {
  /** Of the last `readEntry`. */
  id = 0;
  logprob = 0;
  isNull = false;
  readonly #numbers = new NumberReader();
  #bytes: Uint8Array = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;
  #committed = 0;
  /** A value that is skipped over several pieces. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  #skipping = false;

  /** Further bytes. They are looked at until `keepRest`. */
  push(bytes: Uint8Array): void {
    const rest = this.#bytes.length - this.#committed;
    if (rest === 0) {
      this.#bytes = bytes;
    } else {
      const joined = new Uint8Array(rest + bytes.length);
      joined.set(this.#bytes.subarray(this.#committed));
      joined.set(bytes, rest);
      this.#bytes = joined;
    }
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    this.#at = this.#committed = 0;
  }

  /** What was read will not be read again. */
  commit(): void {
    this.#committed = this.#at;
  }

  /** Keeps what was not committed, as a copy, for the next `push`. */
  keepRest(): void {
    this.#bytes = this.#bytes.slice(this.#committed);
    this.#at = this.#committed = 0;
    if (this.#bytes.length > LONGEST_BYTES) throw inconsistent("The engine's reply has a token of a megabyte");
  }

  /** All that is there. */
  get view(): DataView {
    return this.#view;
  }

  /** The place in `view`. */
  get at(): number {
    return this.#at;
  }

  /** Goes on behind what another reader took from `view`. */
  moveTo(at: number): void {
    this.#at = at;
  }

  /** Whether there is another byte, whatever it is. */
  hasMore(): boolean {
    return this.#at < this.#bytes.length;
  }

  /** To the next byte that is no space; false where there is none. */
  skipSpace(): boolean {
    const bytes = this.#bytes;
    if (this.#at < bytes.length && bytes[this.#at]! > SPACE) return true;
    let at = this.#at;
    while (at < bytes.length && isSpace(bytes[at]!)) at++;
    this.#at = at;
    return at < bytes.length;
  }

  /** Takes a comma, if one is the next byte that is no space. What came before it is committed. */
  takeComma(): boolean {
    this.#committed = this.#at;
    if (!this.skipSpace() || this.#bytes[this.#at] !== COMMA) return false;
    this.#at++;
    return true;
  }

  /** Whether this is the next byte that is no space. */
  isNext(character: string): boolean {
    return this.skipSpace() && this.#bytes[this.#at] === character.charCodeAt(0);
  }

  /** Takes this character, which must be there. */
  take(character: string, what: string): void {
    if (this.#bytes[this.#at] !== character.charCodeAt(0)) throw noJson(`has something else in the place of ${what}`);
    this.#at++;
  }

  /** Takes one of two characters, which must be there. */
  takeOneOf(first: string, second: string): string {
    const byte = this.#bytes[this.#at];
    if (byte !== first.charCodeAt(0) && byte !== second.charCodeAt(0)) throw noJson(`has no "${first}" or "${second}"`);
    this.#at++;
    return byte === first.charCodeAt(0) ? first : second;
  }

  /** Takes `null`: whether it was there, or null where the bytes end before that is known. */
  takeNull(): boolean | null {
    for (let k = 0; k < NULL.length; k++) {
      const byte = this.#bytes[this.#at + k];
      if (byte === undefined) return null;
      if (byte !== NULL[k]) return false;
    }
    this.#at += NULL.length;
    return true;
  }

  /** Takes a key and its colon, up to the value's first byte; null where the bytes end before. */
  keyText(): string | null {
    if (this.#bytes[this.#at] !== QUOTE) throw noJson("has no key where one must be");
    const start = this.#at;
    if (!this.#skipString()) return null;
    const key: unknown = parse(this.#bytes.subarray(start, this.#at));
    if (!this.skipSpace()) return null;
    this.take(":", "a colon");
    return this.skipSpace() ? String(key) : null;
  }

  /** Takes the text's bytes up to its end or that of the bytes, escapes untouched; null where it was over already. */
  takeText(): Uint8Array | null {
    const end = this.#bytes.indexOf(QUOTE, this.#at);
    if (end === this.#at) {
      this.#at++;
      return null;
    }
    const text = this.#bytes.subarray(this.#at, end < 0 ? this.#bytes.length : end);
    this.#at += text.length;
    return text;
  }

  /** Reads a number; null where it is not over yet. */
  readNumber(options: { readonly float32: boolean }): number | null {
    const end = this.#numbers.read(this.#bytes, this.#at, options);
    if (end === "cut") return null;
    if (end === "bad") throw noJson(`has something else in the place of a number (${excerpt(this.#bytes, this.#at)})`);
    this.#at = this.#numbers.at;
    return this.#numbers.value;
  }

  /** Passes over a value, over several pieces if need be; false where it is not over yet. Brackets are counted, not matched. */
  skipValue(): boolean {
    const bytes = this.#bytes;
    for (; this.#at < bytes.length; this.#at++) {
      const byte = bytes[this.#at]!;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) {
          this.#inString = false;
          if (this.#depth === 0) return this.#skipped(1);
        }
        continue;
      }
      if (byte === QUOTE) this.#inString = true;
      else if (byte === OPEN || byte === 123) this.#depth++;
      else if (byte === CLOSE || byte === 125) {
        // A number or word ends before what encloses it.
        if (this.#depth === 0) return this.#skipped(0);
        if (--this.#depth === 0) return this.#skipped(1);
      } else if (byte === COMMA && this.#depth === 0) return this.#skipped(0);
      this.#skipping = true;
    }
    this.commit();
    return false;
  }

  /** Reads a small value whole; null where it is not over yet. */
  readValue(): { readonly value: unknown } | null {
    const start = this.#at;
    const committed = this.#committed;
    const over = this.skipValue();
    if (over) return { value: parse(this.#bytes.subarray(start, this.#at)) };
    // It is read again from its start.
    this.#at = start;
    this.#committed = committed;
    this.#depth = 0;
    this.#inString = this.#escaped = this.#skipping = false;
    return null;
  }

  /** Reads `[logprob, id]` or `[logprob, id, text]`; false where the bytes end before. The logprob may be null. */
  readEntry(options: { readonly float32: boolean }): boolean {
    const bytes = this.#bytes;
    if (!this.skipSpace()) return false;
    if (bytes[this.#at] !== OPEN) throw noJson("has something else in the place of an entry");
    this.#at++;
    if (!this.skipSpace()) return false;
    this.isNull = false;
    if (bytes[this.#at] === LETTER_N) {
      const isNull = this.takeNull();
      if (isNull === null) return false;
      if (!isNull) throw noJson("has a word in the place of a logprob");
      this.isNull = true;
    } else {
      const end = this.#numbers.read(bytes, this.#at, options);
      if (end === "bad") throw noJson(`has a logprob that is no number (${excerpt(bytes, this.#at)})`);
      if (end === "cut") return false;
      this.logprob = this.#numbers.value;
      this.#at = this.#numbers.at;
    }
    if (!this.skipSpace()) return false;
    if (bytes[this.#at] !== COMMA) throw noJson("has something else in the place of an id");
    this.#at++;
    if (!this.skipSpace() || !this.#readId() || !this.skipSpace()) return false;
    if (bytes[this.#at] === COMMA) {
      this.#at++;
      if (!this.skipSpace() || !this.#skipText() || !this.skipSpace()) return false;
    }
    if (bytes[this.#at] !== CLOSE) throw noJson("has something else in the place of an entry's end");
    this.#at++;
    return true;
  }

  /** A whole number from 0; it is over when another byte follows. */
  #readId(): boolean {
    const bytes = this.#bytes;
    const start = this.#at;
    let at = start;
    let id = 0;
    for (; at < bytes.length; at++) {
      const digit = bytes[at]! - 48;
      if (digit < 0 || digit > 9) break;
      id = id * 10 + digit;
    }
    if (at === bytes.length) return false;
    if (at === start || id > 0x7fffffff) throw noJson(`has no token id where one must be (${excerpt(bytes, start)})`);
    this.#at = at;
    this.id = id;
    return true;
  }

  /** A token's text or null. */
  #skipText(): boolean {
    if (this.#bytes[this.#at] === QUOTE) return this.#skipString();
    const isNull = this.takeNull();
    if (isNull === false) throw noJson("has neither text nor null in an entry");
    return isNull === true;
  }

  #skipString(): boolean {
    const bytes = this.#bytes;
    for (let at = this.#at + 1; at < bytes.length; at++) {
      if (bytes[at] === BACKSLASH) at++;
      else if (bytes[at] === QUOTE) {
        this.#at = at + 1;
        return true;
      }
    }
    return false;
  }

  #skipped(last: number): boolean {
    if (last === 0 && !this.#skipping) throw noJson("has no value where one must be");
    this.#at += last;
    this.#depth = 0;
    this.#skipping = false;
    return true;
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw noJson("has a value that is no JSON", cause);
  }
}

function excerpt(bytes: Uint8Array, at: number): string {
  return new TextDecoder().decode(bytes.subarray(at, at + 12));
}

function noJson(what: string, cause?: unknown): Error {
  return inconsistent(`The engine's reply ${what}`, cause === undefined ? {} : { cause: String(cause) });
}
