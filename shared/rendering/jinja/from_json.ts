/** JSON as template values: parsed data, or JSON text read as Python reads it, where 1.0 is not 1. */

import type { Json } from "../../core/message.ts";
import { foreign } from "./text.ts";
import { Dict, Float, type Value } from "./values.ts";

/** Parsed JSON; its strings and keys are foreign unless trusted. */
export function fromJson(value: Json, trusted = false): Value {
  if (typeof value === "string") return trusted ? value : foreign(value);
  if (typeof value === "number") {
    if (!Number.isInteger(value)) return new Float(value);
    if (Number.isSafeInteger(value)) return value + 0;
    // Digits beyond a double's are lost; the shortest that read back are likelier what was written.
    return BigInt(Math.abs(value) < 1e21 ? String(value) : value);
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => fromJson(item, trusted));
  const entries = new Map<string, Value>();
  for (const key of Object.keys(value)) entries.set(key, fromJson(value[key] ?? null, trusted));
  return new Dict(entries, !trusted);
}

/** The object that a JSON text denotes, all of it foreign; null where the text is no JSON object. */
export function readJsonObject(text: string): Dict | null {
  try {
    const value = new JsonReader(text).read();
    return value instanceof Dict ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const TOKEN = /(-?(?:0|[1-9]\d*))(\.\d+)?([eE][+-]?\d+)?|[{}[\],:]|true|false|null|NaN|-?Infinity/y;
const MAX_DEPTH = 500;

/** A JSON token: punctuation, a scalar, or the end (`""`). */
interface JsonToken {
  readonly kind: string;
  readonly value?: Value;
  /** Of a string, the string. */
  readonly text?: string;
}

/** Tells a value from text that is none by throwing. */
class JsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Value {
    const value = this.#readValue(this.#next(), 0);
    if (this.#next().kind !== "") throw new SyntaxError("text after the value");
    return value;
  }

  #next(): JsonToken {
    while (" \t\n\r".includes(this.#text.charAt(this.#at)) && this.#at < this.#text.length) this.#at++;
    if (this.#at >= this.#text.length) return { kind: "" };
    if (this.#text.charAt(this.#at) === '"') return this.#readString();
    TOKEN.lastIndex = this.#at;
    const match = TOKEN.exec(this.#text);
    if (match === null) throw new SyntaxError("no JSON");
    this.#at = TOKEN.lastIndex;
    const [token, integer, fraction, exponent] = match;
    if (integer !== undefined) {
      return { kind: "scalar", value: readNumber(token, fraction !== undefined || exponent !== undefined) };
    }
    return token.length === 1 ? { kind: token } : { kind: "scalar", value: readWord(token) };
  }

  #readString(): JsonToken {
    const start = this.#at++;
    while (this.#text.charCodeAt(this.#at) !== 0x22) {
      if (this.#at >= this.#text.length) throw new SyntaxError("a string without an end");
      this.#at += this.#text.charCodeAt(this.#at) === 0x5c ? 2 : 1;
    }
    const text: unknown = JSON.parse(this.#text.slice(start, ++this.#at));
    if (typeof text !== "string") throw new SyntaxError("no string");
    return { kind: "string", value: foreign(text), text };
  }

  #readValue(token: JsonToken, depth: number): Value {
    if (depth > MAX_DEPTH) throw new SyntaxError("nested too deep");
    if (token.value !== undefined) return token.value;
    if (token.kind === "{") return this.#readObject(depth);
    if (token.kind === "[") return this.#readArray(depth);
    throw new SyntaxError(`${token.kind} instead of a value`);
  }

  #readArray(depth: number): Value {
    const items: Value[] = [];
    let token = this.#next();
    while (token.kind !== "]") {
      items.push(this.#readValue(token, depth + 1));
      token = this.#separator("]");
    }
    return items;
  }

  #readObject(depth: number): Value {
    const entries = new Map<string, Value>();
    let token = this.#next();
    while (token.kind !== "}") {
      if (token.text === undefined || this.#next().kind !== ":") throw new SyntaxError("no key");
      entries.set(token.text, this.#readValue(this.#next(), depth + 1));
      token = this.#separator("}");
    }
    return new Dict(entries, true);
  }

  /** After an item: the closing token, or the first token of the next item. */
  #separator(closing: string): JsonToken {
    const token = this.#next();
    if (token.kind === closing) return token;
    if (token.kind !== ",") throw new SyntaxError("no comma");
    const next = this.#next();
    if (next.kind === closing) throw new SyntaxError("a comma before the end");
    return next;
  }
}

function readNumber(text: string, isFloat: boolean): Value {
  if (isFloat) return new Float(Number(text));
  const value = Number(text);
  return Number.isSafeInteger(value) ? value + 0 : BigInt(text);
}

function readWord(word: string): Value {
  switch (word) {
    case "true":
      return true;
    case "false":
      return false;
    case "null":
      return null;
    case "NaN":
      return new Float(NaN);
    default:
      return new Float(word.startsWith("-") ? -Infinity : Infinity);
  }
}
