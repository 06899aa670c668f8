/** Finds the end of one JSON value in a text that is still coming, strictly by RFC 8259. It builds no value. */

import type { TextCursor } from "./text_cursor.ts";

/** A member of the value scanned, by absolute offsets: its key with quotes, its value. */
export interface JsonMember {
  readonly keyFrom: number;
  readonly keyTo: number;
  readonly from: number;
  readonly to: number;
}

/** How far scanning got: `more` text is needed, the value is whole, or this is no JSON. */
export type ScanState = "more" | "done" | "error";

type Expected =
  | "value"
  | "first_key"
  | "key"
  | "colon"
  | "first_element"
  | "after"
  | "string"
  | "escape"
  | "hex"
  | "number"
  | "word";

/** What may not stand in a string as it is: the quote, the backslash and what sorts before the space. */
const STRING_END = /[^ !#-[\]-\uffff]/g;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const WORDS: Readonly<Record<string, string>> = { t: "true", f: "false", n: "null" };

/** Scans one value: an object, or a string. Keeps its state between calls, so that no character is read twice. */
export class JsonScanner {
  /** The outermost object's members. */
  readonly members: JsonMember[] = [];
  /** The key, with quotes, of the member that is being scanned. */
  openKey: { readonly keyFrom: number; readonly keyTo: number } | null = null;

  readonly #keepsMembers: boolean;
  /** Open containers, `{` or `[`. */
  #open: string[] = [];
  #depth = 0;
  #expected: Expected = "value";
  #isKey = false;
  #hexLeft = 0;
  #word = "";
  #wordLength = 0;
  #numberFrom = 0;
  #keyFrom = 0;
  #valueFrom = 0;
  #consumed = true;

  constructor(options: { readonly keepsMembers: boolean }) {
    this.#keepsMembers = options.keepsMembers;
  }

  /** Reads on. The cursor ends behind the value, behind all there is, or at what is no JSON. */
  advance(cursor: TextCursor): ScanState {
    const { window } = cursor;
    const base = cursor.offset - cursor.position;
    let index = cursor.position;
    let state: ScanState = "more";
    while (index < window.length && state === "more") {
      if (this.#expected === "string") {
        STRING_END.lastIndex = index;
        const found = STRING_END.exec(window);
        if (found === null) {
          index = window.length;
          break;
        }
        index = found.index;
      }
      const character = window.charAt(index);
      state = this.#take(character, base + index, cursor);
      // A number ends at the character behind it, which is then read again.
      if (state !== "error" && this.#consumed) index++;
    }
    cursor.position = index;
    return state;
  }

  #take(character: string, offset: number, cursor: TextCursor): ScanState {
    this.#consumed = true;
    switch (this.#expected) {
      case "string":
        if (character === "\\") this.#expected = "escape";
        else if (character === '"') return this.#endString(offset + 1);
        else return "error";
        return "more";
      case "escape":
        if (character === "u") {
          this.#expected = "hex";
          this.#hexLeft = 4;
        } else if (!'"\\/bfnrt'.includes(character)) return "error";
        else this.#expected = "string";
        return "more";
      case "hex":
        if (!isHex(character)) return "error";
        this.#hexLeft--;
        if (this.#hexLeft === 0) this.#expected = "string";
        return "more";
      case "number":
        if (isNumberCharacter(character)) return "more";
        if (!NUMBER.test(cursor.slice(this.#numberFrom, offset))) return "error";
        this.#consumed = false;
        return this.#endValue(offset);
      case "word":
        if (character !== this.#word.charAt(this.#wordLength)) return "error";
        this.#wordLength++;
        return this.#wordLength === this.#word.length ? this.#endValue(offset + 1) : "more";
      default:
        return isJsonSpace(character) ? "more" : this.#takeToken(character, offset);
    }
  }

  #takeToken(character: string, offset: number): ScanState {
    switch (this.#expected) {
      case "first_key":
        if (character === "}") return this.#endContainer(offset);
        return this.#beginKey(character, offset);
      case "key":
        return this.#beginKey(character, offset);
      case "colon":
        if (character !== ":") return "error";
        this.#expected = "value";
        return "more";
      case "first_element":
        if (character === "]") return this.#endContainer(offset);
        return this.#beginValue(character, offset);
      case "after": {
        const isObject = this.#open.at(-1) === "{";
        if (character === (isObject ? "}" : "]")) return this.#endContainer(offset);
        if (character !== ",") return "error";
        this.#expected = isObject ? "key" : "value";
        return "more";
      }
      default:
        return this.#beginValue(character, offset);
    }
  }

  #beginKey(character: string, offset: number): ScanState {
    if (character !== '"') return "error";
    this.#isKey = true;
    if (this.#depth === 1) this.#keyFrom = offset;
    this.#expected = "string";
    return "more";
  }

  #beginValue(character: string, offset: number): ScanState {
    if (this.#depth === 1) this.#valueFrom = offset;
    if (character === '"') {
      this.#isKey = false;
      this.#expected = "string";
    } else if (character === "{" || (character === "[" && this.#depth > 0)) {
      this.#open.push(character);
      this.#depth++;
      this.#expected = character === "{" ? "first_key" : "first_element";
    } else if (this.#depth === 0) {
      return "error";
    } else if (character === "-" || (character >= "0" && character <= "9")) {
      this.#numberFrom = offset;
      this.#expected = "number";
    } else {
      const word = WORDS[character];
      if (word === undefined) return "error";
      this.#word = word;
      this.#wordLength = 1;
      this.#expected = "word";
    }
    return "more";
  }

  #endString(end: number): ScanState {
    if (!this.#isKey) return this.#endValue(end);
    if (this.#depth === 1) this.openKey = { keyFrom: this.#keyFrom, keyTo: end };
    this.#expected = "colon";
    return "more";
  }

  #endContainer(offset: number): ScanState {
    this.#open.pop();
    this.#depth--;
    return this.#endValue(offset + 1);
  }

  #endValue(end: number): ScanState {
    if (this.#depth === 0) return "done";
    if (this.#depth === 1 && this.openKey !== null) {
      if (this.#keepsMembers) this.members.push({ ...this.openKey, from: this.#valueFrom, to: end });
      this.openKey = null;
    }
    this.#expected = "after";
    return "more";
  }
}

function isJsonSpace(character: string): boolean {
  return character === " " || character === "\n" || character === "\t" || character === "\r";
}

function isHex(character: string): boolean {
  return /^[0-9a-fA-F]$/.test(character);
}

function isNumberCharacter(character: string): boolean {
  return (character >= "0" && character <= "9") || character === "." || character === "-" || character === "+" ||
    character === "e" || character === "E";
}
