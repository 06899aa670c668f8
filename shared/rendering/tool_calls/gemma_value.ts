/** Gemma's own notation for arguments, `{key:<|"|>text<|"|>,number:2,list:[true]}`: finds its end, and writes it as compact JSON. */

import type { CallValue } from "./call_body.ts";
import type { ScanState } from "./json_scanner.ts";
import { isJsonNumber } from "./json_text.ts";
import type { TextCursor } from "./text_cursor.ts";

const QUOTE = '<|"|>';
const OUTSIDE = /[{}[\]<]/g;
const DEEPEST = 200;

/** Scans one object from its brace to the one that closes it. */
class GemmaScanner {
  #inString = false;
  #closers: string[] = [];

  /** Reads on. The cursor ends behind the object, behind all there is, or at what is no object. */
  advance(cursor: TextCursor): ScanState {
    const { window } = cursor;
    if (this.#closers.length === 0 && cursor.position < window.length && window[cursor.position] !== "{") {
      return "error";
    }
    for (;;) {
      if (this.#inString) {
        const end = window.indexOf(QUOTE, cursor.position);
        if (end < 0) {
          // What may be the beginning of the closing quote is looked at again.
          cursor.position = Math.max(cursor.position, openQuote(window, cursor.ended));
          return "more";
        }
        cursor.position = end + QUOTE.length;
        this.#inString = false;
      }
      OUTSIDE.lastIndex = cursor.position;
      const found = OUTSIDE.exec(window);
      cursor.position = found?.index ?? window.length;
      if (found === null) return "more";
      const [character] = found;
      if (character === "<") {
        if (!window.startsWith(QUOTE, cursor.position)) {
          return !cursor.ended && QUOTE.startsWith(window.slice(cursor.position)) ? "more" : "error";
        }
        cursor.position += QUOTE.length;
        this.#inString = true;
      } else if (character === "{" || character === "[") {
        this.#closers.push(character === "{" ? "}" : "]");
        cursor.position++;
      } else {
        if (this.#closers.pop() !== character) return "error";
        cursor.position++;
        if (this.#closers.length === 0) return "done";
      }
    }
  }
}

function openQuote(window: string, ended: boolean): number {
  if (ended) return window.length;
  for (let length = QUOTE.length - 1; length > 0; length--) {
    if (window.endsWith(QUOTE.slice(0, length))) return window.length - length;
  }
  return window.length;
}

/** The object as compact JSON, or null. Keys in the order written, the last of a repeated one wins; a bare word is a string. */
function gemmaObject(text: string): string | null {
  const reader = new GemmaReader(text);
  const json = reader.value(0);
  return json !== null && reader.atEnd ? json : null;
}

/** The value of a Gemma call. */
export const GEMMA_ARGUMENTS: CallValue = {
  hasName: true,
  begin(cursor) {
    const from = cursor.offset;
    return {
      scanner: new GemmaScanner(),
      call(to, name) {
        const json = gemmaObject(cursor.slice(from, to));
        return json === null ? null : { name, arguments: json };
      },
    };
  },
};

class GemmaReader {
  #position = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get atEnd(): boolean {
    return this.#position === this.#text.length;
  }

  value(depth: number): string | null {
    if (depth > DEEPEST) return null;
    this.#skipSpace();
    let json: string | null;
    if (this.#accept("{")) json = this.#object(depth);
    else if (this.#accept("[")) json = this.#array(depth);
    else {
      const string = this.#string();
      json = string === null ? this.#bare() : JSON.stringify(string);
    }
    this.#skipSpace();
    return json;
  }

  #object(depth: number): string | null {
    const members = new Map<string, string>();
    this.#skipSpace();
    while (!this.#accept("}")) {
      this.#skipSpace();
      const key = this.#string() ?? this.#word(/[:,{}[\]<]/g);
      this.#skipSpace();
      if (key === "" || !this.#accept(":")) return null;
      const value = this.value(depth + 1);
      if (value === null) return null;
      members.set(key, value);
      if (!this.#accept(",")) {
        if (this.#accept("}")) break;
        return null;
      }
      this.#skipSpace();
    }
    return `{${[...members].map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
  }

  #array(depth: number): string | null {
    const items: string[] = [];
    this.#skipSpace();
    while (!this.#accept("]")) {
      const item = this.value(depth + 1);
      if (item === null) return null;
      items.push(item);
      if (!this.#accept(",")) {
        if (this.#accept("]")) break;
        return null;
      }
      this.#skipSpace();
    }
    return `[${items.join(",")}]`;
  }

  #string(): string | null {
    if (!this.#accept(QUOTE)) return null;
    const end = this.#text.indexOf(QUOTE, this.#position);
    if (end < 0) return null;
    const string = this.#text.slice(this.#position, end);
    this.#position = end + QUOTE.length;
    return string;
  }

  #bare(): string | null {
    const word = this.#word(/[,{}[\]<]/g);
    if (word === "") return null;
    if (word === "true" || word === "false" || word === "null") return word;
    return isJsonNumber(word) ? word : JSON.stringify(word);
  }

  #word(stop: RegExp): string {
    stop.lastIndex = this.#position;
    const end = stop.exec(this.#text)?.index ?? this.#text.length;
    const word = this.#text.slice(this.#position, end).trim();
    this.#position = end;
    return word;
  }

  #skipSpace(): void {
    while (/^\s$/.test(this.#text.charAt(this.#position))) this.#position++;
  }

  #accept(literal: string): boolean {
    if (!this.#text.startsWith(literal, this.#position)) return false;
    this.#position += literal.length;
    return true;
  }
}
