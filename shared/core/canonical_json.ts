/** JSON values in one spelling, with the number semantics of JavaScript. It knows nothing of messages. */

import type { Json } from "./message.ts";

/** Deeper values are not taken apart: they compare as the text they came as. */
const MAX_DEPTH = 500;

/**
 * A value with its keys sorted and its numbers as doubles: `60.0`, `60` and `6e1` are one, large integers are the
 * nearest double. Null where the value is nested deeper than any real one.
 */
export function canonicalJson(value: Json): string | null {
  try {
    return write(value, 0);
  } catch (thrown) {
    if (thrown instanceof RangeError) return null;
    throw thrown;
  }
}

/**
 * A call's arguments as compared: the JSON value, key-sorted, the last of duplicate keys; `""` is `{}`; text that is no
 * JSON stands for itself.
 */
export function canonicalArguments(text: string): string {
  if (text === "") return "{}";
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    return unparsable(text);
  }
  return canonicalJson(value) ?? unparsable(text);
}

/** No JSON text starts with this mark, so no value can be taken for unparsable text. */
function unparsable(text: string): string {
  return `!${text}`;
}

function write(value: Json, depth: number): string {
  if (depth > MAX_DEPTH) throw new RangeError(`nested deeper than ${MAX_DEPTH}`);
  if (value === null || typeof value === "boolean") return String(value);
  // String() and not JSON.stringify(): 1e999 is Infinity, which JSON would write as null. Adding 0 makes -0 the same as 0.
  if (typeof value === "number") return String(value + 0);
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => write(item, depth + 1)).join(",")}]`;
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${write(value[key]!, depth + 1)}`);
  return `{${members.join(",")}}`;
}
