/** Reads a Python literal and writes it as compact JSON. It knows nothing of calls or schemas. */

/** A literal as JSON text, and the type it has there. */
export interface Literal {
  readonly type: "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";
  readonly json: string;
}

/** How deep containers may nest. */
const DEEPEST = 200;

const SPACE = /[ \t\r\n\f]*/y;
const NUMBER = /[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?/y;
const RADIX = /[+-]?0(?:[xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)/y;
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const STRING_START = /([rR]?)("""|'''|"|')/y;
/** What a string goes on to, by its quotes. */
const STRING_STOPS: Readonly<Record<string, RegExp>> = {
  '"': /["\\\n]/g,
  "'": /['\\\n]/g,
  '"""': /"""|\\/g,
  "'''": /'''|\\/g,
};
const WORDS: Readonly<Record<string, Literal>> = {
  None: { type: "null", json: "null" },
  null: { type: "null", json: "null" },
  True: { type: "boolean", json: "true" },
  true: { type: "boolean", json: "true" },
  False: { type: "boolean", json: "false" },
  false: { type: "boolean", json: "false" },
};
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "\n": "",
};

/** Reads literals from one text, one after the other. `null` is JSON's and `None` Python's: both are read. */
export class LiteralReader {
  /** Where reading stands. */
  position = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Skips white space. */
  skipSpace(): void {
    this.match(SPACE);
  }

  /** Reads `literal` if it comes next. */
  accept(literal: string): boolean {
    if (!this.#text.startsWith(literal, this.position)) return false;
    this.position += literal.length;
    return true;
  }

  /** Reads what a sticky pattern matches, or nothing. */
  match(pattern: RegExp): string | null {
    pattern.lastIndex = this.position;
    const match = pattern.exec(this.#text);
    if (match === null) return null;
    this.position += match[0].length;
    return match[0];
  }

  /** Whether all is read. */
  get atEnd(): boolean {
    return this.position === this.#text.length;
  }

  /** Reads one literal, white space around it too; null if there is none, the position then means nothing. */
  literal(depth = 0): Literal | null {
    if (depth > DEEPEST) return null;
    this.skipSpace();
    const value = this.#value(depth);
    this.skipSpace();
    return value;
  }

  #value(depth: number): Literal | null {
    if (this.accept("[")) return this.#sequence("]", depth);
    if (this.accept("(")) return this.#sequence(")", depth);
    if (this.accept("{")) return this.#dictionary(depth);
    const string = this.#strings();
    if (string !== undefined) return string === null ? null : { type: "string", json: JSON.stringify(string) };
    const radix = this.match(RADIX);
    if (radix !== null) return radixInteger(radix);
    const number = this.match(NUMBER);
    if (number !== null) return decimalNumber(number);
    const word = this.match(WORD);
    return word === null || !Object.hasOwn(WORDS, word) ? null : WORDS[word] ?? null;
  }

  #sequence(close: string, depth: number): Literal | null {
    const items: string[] = [];
    this.skipSpace();
    while (!this.accept(close)) {
      const item = this.literal(depth + 1);
      if (item === null) return null;
      items.push(item.json);
      if (this.accept(",")) this.skipSpace();
      else if (!this.accept(close)) return null;
      // Without a comma, parentheses only group.
      else if (close === ")" && items.length === 1) return item;
      else break;
    }
    return { type: "array", json: `[${items.join(",")}]` };
  }

  #dictionary(depth: number): Literal | null {
    const members = new Map<string, string>();
    this.skipSpace();
    while (!this.accept("}")) {
      const key = this.literal(depth + 1);
      if (key === null || key.type === "array" || key.type === "object" || !this.accept(":")) return null;
      const value = this.literal(depth + 1);
      if (value === null) return null;
      members.set(key.type === "string" ? key.json : JSON.stringify(key.json), value.json);
      if (this.accept(",")) this.skipSpace();
      else if (this.accept("}")) break;
      else return null;
    }
    return { type: "object", json: `{${[...members].map(([key, value]) => `${key}:${value}`).join(",")}}` };
  }

  /** Adjacent strings are one. Undefined where none begins, null where one is broken. */
  #strings(): string | null | undefined {
    let whole: string | undefined;
    for (;;) {
      STRING_START.lastIndex = this.position;
      const start = STRING_START.exec(this.#text);
      if (start === null) return whole;
      this.position += start[0].length;
      const part = this.#string(start[2] ?? "", start[1] !== "");
      if (part === null) return null;
      whole = (whole ?? "") + part;
      this.skipSpace();
    }
  }

  #string(quote: string, isRaw: boolean): string | null {
    const parts: string[] = [];
    const stop = STRING_STOPS[quote] ?? /["']/g;
    for (;;) {
      stop.lastIndex = this.position;
      const found = stop.exec(this.#text);
      if (found === null || found[0] === "\n") return null;
      parts.push(this.#text.slice(this.position, found.index));
      this.position = found.index + found[0].length;
      if (found[0] === quote) return parts.join("");
      if (isRaw) {
        parts.push("\\", this.#text.charAt(this.position));
        this.position++;
        continue;
      }
      const escaped = this.#escape();
      if (escaped === null) return null;
      parts.push(escaped);
    }
  }

  #escape(): string | null {
    const character = this.#text.charAt(this.position);
    this.position++;
    const simple = Object.hasOwn(ESCAPES, character) ? ESCAPES[character] : undefined;
    if (simple !== undefined) return simple;
    const digits = { x: 2, u: 4, U: 8 }[character];
    if (digits !== undefined) {
      const hex = this.#text.slice(this.position, this.position + digits);
      if (hex.length < digits || !/^[0-9a-fA-F]+$/.test(hex)) return null;
      this.position += digits;
      const code = parseInt(hex, 16);
      return code > 0x10ffff ? null : String.fromCodePoint(code);
    }
    if (character >= "0" && character <= "7") {
      this.position--;
      return String.fromCharCode(parseInt(this.match(/[0-7]{1,3}/y) ?? "0", 8));
    }
    return `\\${character}`;
  }
}

/** The literal that a text is, whole; null if it is none. */
export function parsePythonLiteral(text: string): Literal | null {
  const reader = new LiteralReader(text);
  const literal = reader.literal();
  return literal !== null && reader.atEnd ? literal : null;
}

function radixInteger(text: string): Literal | null {
  const sign = text.startsWith("-") ? "-" : "";
  const digits = text.replace(/^[+-]/, "").replaceAll("_", "");
  if (!/^0[xX][0-9a-fA-F]+$|^0[oO][0-7]+$|^0[bB][01]+$/.test(digits)) return null;
  return { type: "integer", json: sign + BigInt(digits).toString() };
}

function decimalNumber(text: string): Literal | null {
  const plain = text.replace(/^\+/, "").replaceAll("_", "");
  if (/^-?[0-9]+$/.test(plain)) {
    // Python takes 0 and 00, and no other number that begins with 0.
    if (/^-?0+[1-9]/.test(plain)) return null;
    return { type: "integer", json: plain.replace(/^(-?)0+$/, "0") };
  }
  const json = plain
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, ".0")
    .replace(/^(-?)0+(?=[0-9])/, "$1");
  return Number.isFinite(Number(json)) ? { type: "number", json } : null;
}
