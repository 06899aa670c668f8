/** Calls written as in Python, `name(key=literal)`: finds their end in a text that is still coming, and reads them. */

import type { ScanState } from "./json_scanner.ts";
import type { ReadCall } from "./message_sink.ts";
import { LiteralReader } from "./python_literal.ts";
import type { TextCursor } from "./text_cursor.ts";

/** A name, dots and hyphens included. */
const NAME = /[\p{L}_][\p{L}\p{N}_.-]*/uy;
const KEY = /[\p{L}_][\p{L}\p{N}_]*/uy;

/** What matters outside strings: quotes, brackets, and what is in no literal. Letters beyond ASCII are looked at once all is there. */
const OUTSIDE = /["'()[\]{}]|[^\s\w.,:=+\-\u0080-\uffff]/g;

/** What matters within strings, in one line and in several. */
const SHORT_STOP = /["'\\\n]/g;
const LONG_STOP = /["'\\]/g;

/** What ends a call's name. */
const NAME_END = /[^\s\w.\-\u0080-\uffff]/g;

/** Scans one call from its name to the bracket that closes it. */
export class PythonCallScanner {
  #quote = "";
  /** Brackets that are open, as what closes them. */
  #closers: string[] = [];

  /** Reads on. The cursor ends behind the call, behind all there is, or at what is no call. */
  advance(cursor: TextCursor): ScanState {
    for (;;) {
      const state = this.#quote === "" ? this.#readOutside(cursor) : this.#readString(cursor);
      if (state !== null) return state;
    }
  }

  #readOutside(cursor: TextCursor): ScanState | null {
    const { window } = cursor;
    const stop = this.#closers.length === 0 ? NAME_END : OUTSIDE;
    stop.lastIndex = cursor.position;
    const found = stop.exec(window);
    cursor.position = found?.index ?? window.length;
    if (found === null) return "more";
    const [character] = found;
    if (this.#closers.length === 0 && character !== "(") return "error";
    const closer = { "(": ")", "[": "]", "{": "}" }[character];
    if (closer !== undefined) {
      this.#closers.push(closer);
      cursor.position++;
    } else if (character === '"' || character === "'") {
      // Whether a quote is one or three takes three characters to see.
      const left = window.length - cursor.position;
      if (left < 3 && !cursor.ended && window.endsWith(character.repeat(left))) return "more";
      this.#quote = window.startsWith(character.repeat(3), cursor.position) ? character.repeat(3) : character;
      cursor.position += this.#quote.length;
    } else {
      if (this.#closers.pop() !== character) return "error";
      cursor.position++;
      if (this.#closers.length === 0) return "done";
    }
    return null;
  }

  #readString(cursor: TextCursor): ScanState | null {
    const { window } = cursor;
    const quote = this.#quote;
    const stop = quote.length === 3 ? LONG_STOP : SHORT_STOP;
    for (;;) {
      stop.lastIndex = cursor.position;
      const found = stop.exec(window);
      cursor.position = found?.index ?? window.length;
      if (found === null) return "more";
      const [character] = found;
      if (character === "\n") return "error";
      if (character === "\\") {
        if (window.length - cursor.position < 2) return "more";
        cursor.position += 2;
      } else if (window.startsWith(quote, cursor.position)) {
        cursor.position += quote.length;
        this.#quote = "";
        return null;
      } else {
        const left = window.length - cursor.position;
        if (left < quote.length && !cursor.ended && quote.startsWith(window.slice(cursor.position))) return "more";
        cursor.position++;
      }
    }
  }
}

/** The call that a text is; null if it is none, or has arguments without a key. */
export function parsePythonCall(text: string): ReadCall | null {
  const reader = new LiteralReader(text);
  const name = reader.match(NAME);
  reader.skipSpace();
  if (name === null || !reader.accept("(")) return null;
  const members = new Map<string, string>();
  reader.skipSpace();
  while (!reader.accept(")")) {
    const key = reader.match(KEY);
    reader.skipSpace();
    if (key === null || !reader.accept("=")) return null;
    const value = reader.literal();
    if (value === null) return null;
    members.set(key, value.json);
    if (reader.accept(",")) reader.skipSpace();
    else if (reader.accept(")")) break;
    else return null;
  }
  if (!reader.atEnd) return null;
  const written = [...members].map(([key, json]) => `${JSON.stringify(key)}:${json}`);
  return { name, arguments: `{${written.join(",")}}` };
}
