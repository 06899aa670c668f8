/** How Python writes values: `str`, `repr` and `json.dumps`, and how it reads JSON. */

import {
  compareCodePoints,
  concatenate,
  foreign,
  ForeignText,
  isText,
  joinTexts,
  plain,
  rewritten,
  type Text,
} from "./text.ts";
import { Callable, Dict, Float, isList, TemplateError, Tuple, typeName, Undefined, type Value } from "./values.ts";

/** `str(value)`. */
export function toText(value: Value): Text {
  if (isText(value)) return value;
  return value instanceof Undefined ? "" : represent(value);
}

/** `repr(value)`. */
export function represent(value: Value): Text {
  if (isText(value)) return rewritten(value, representString(plain(value)));
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof Float) return representFloat(value.value);
  if (value instanceof Undefined) return "Undefined";
  if (isList(value)) return concatenate(["[", joinTexts(value.map(represent), ", "), "]"]);
  if (value instanceof Tuple) {
    return concatenate(["(", joinTexts(value.items.map(represent), ", "), value.items.length === 1 ? ",)" : ")"]);
  }
  if (value instanceof Dict) {
    const entries = Array.from(value.entries, ([key, item]) => {
      const name = value.foreignKeys ? foreign(key) : key;
      return concatenate([represent(name), ": ", represent(item)]);
    });
    return concatenate(["{", joinTexts(entries, ", "), "}"]);
  }
  throw new TemplateError(
    `a ${value instanceof Callable ? `function (${value.name})` : typeName(value)} is written as text`,
  );
}

/** Quotes as Python chooses them, and escapes for what it does not print. */
function representString(value: string): string {
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const body = value.replace(/[\\'"]|(?! )[\p{C}\p{Z}]/gu, (character) => {
    if (character === '"' || character === "'") return character === quote ? `\\${character}` : character;
    switch (character) {
      case "\\":
        return "\\\\";
      case "\n":
        return "\\n";
      case "\r":
        return "\\r";
      case "\t":
        return "\\t";
    }
    const code = character.codePointAt(0) ?? 0;
    const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    return `\\${letter}${code.toString(16).padStart(Number(digits), "0")}`;
  });
  return quote + body + quote;
}

/** The shortest digits that read back, as in JavaScript, but with Python's rule for exponents. */
export function representFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (Object.is(value, -0)) return "-0.0";
  if (value === 0) return "0.0";
  const [mantissa = "", exponentText = ""] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    const sign = exponent < 0 ? "-" : "+";
    return `${mantissa}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  // Within this range JavaScript writes no exponent, but for the smallest.
  const text = Math.abs(value) < 1e-6 ? value.toFixed(20).replace(/0+$/, "") : String(value);
  return text.includes(".") ? text : `${text}.0`;
}

export interface JsonStyle {
  readonly ensureAscii: boolean;
  /** Text of one level of indentation; null: on one line. */
  readonly indent: string | null;
  readonly separators: readonly [item: string, key: string];
  readonly sortKeys: boolean;
}

/** `json.dumps(value)`, foreign as a whole if a string in it is. */
export function toJson(value: Value, style: JsonStyle): Text {
  const found = { foreign: false };
  const json = writeJson(value, style, "\n", found);
  return found.foreign ? foreign(json) : json;
}

function writeJson(value: Value, style: JsonStyle, newline: string, found: { foreign: boolean }): string {
  if (isText(value)) {
    if (value instanceof ForeignText) found.foreign = true;
    return jsonString(plain(value), style);
  }
  if (value === null) return "null";
  if (typeof value === "boolean" || typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof Float) {
    if (Number.isFinite(value.value)) return representFloat(value.value);
    return Number.isNaN(value.value) ? "NaN" : value.value < 0 ? "-Infinity" : "Infinity";
  }
  const inner = style.indent === null ? "" : newline + style.indent;
  const outer = style.indent === null ? "" : newline;
  const deeper = newline + (style.indent ?? "");
  if (isList(value) || value instanceof Tuple) {
    const items = isList(value) ? value : value.items;
    if (items.length === 0) return "[]";
    const written = items.map((item) => inner + writeJson(item, style, deeper, found));
    return `[${written.join(style.separators[0])}${outer}]`;
  }
  if (value instanceof Dict) {
    if (value.entries.size === 0) return "{}";
    if (value.foreignKeys) found.foreign = true;
    const entries = [...value.entries];
    if (style.sortKeys) entries.sort(([a], [b]) => compareCodePoints(a, b));
    const written = entries.map(([key, item]) =>
      inner + jsonString(key, style) + style.separators[1] + writeJson(item, style, deeper, found)
    );
    return `{${written.join(style.separators[0])}${outer}}`;
  }
  throw new TemplateError(`Object of type ${typeName(value)} is not JSON serializable`);
}

function jsonString(value: string, style: JsonStyle): string {
  const json = JSON.stringify(value);
  if (!style.ensureAscii) return json;
  return json.replace(
    /[\u007f-\uffff]/g,
    (unit) => unit === "\u007f" ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
