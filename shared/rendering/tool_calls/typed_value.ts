/** Gives the text of an argument the type its schema allows (rule 8), as JSON text. It knows neither tools nor markers. */

import type { AllowedTypes, JsonType } from "./argument_schema.ts";
import { compactJson, integerDigits, isJson, isJsonNumber } from "./json_text.ts";
import { parsePythonLiteral } from "./python_literal.ts";

/** The value as compact JSON text; `fits` is false where the text is of no allowed type and became a string. */
export interface TypedValue {
  readonly json: string;
  readonly fits: boolean;
}

/** The types in the order in which they are tried. */
const ORDER: readonly JsonType[] = ["integer", "number", "boolean", "object", "array"];

/** The value that `text` denotes under `allowed`; null means untyped, which is a string. */
export function typeValue(text: string, allowed: AllowedTypes): TypedValue {
  if (allowed === null) return { json: JSON.stringify(text), fits: true };
  if (allowed.has("null")) {
    if (text === "null" || (text === "None" && !allowed.has("string"))) return { json: "null", fits: true };
  }
  for (const type of ORDER) {
    if (!allowed.has(type)) continue;
    const json = valueOfType(text.trim(), type);
    if (json !== null) return { json, fits: true };
  }
  return { json: JSON.stringify(text), fits: allowed.has("string") };
}

function valueOfType(text: string, type: JsonType): string | null {
  switch (type) {
    case "integer":
      return integerDigits(text);
    case "number":
      return isJsonNumber(text) ? text : null;
    case "boolean":
      if (text === "true" || text === "True") return "true";
      return text === "false" || text === "False" ? "false" : null;
    case "object":
      return containerOf(text, "object");
    case "array":
      return containerOf(text, "array");
    default:
      return null;
  }
}

function containerOf(text: string, type: "object" | "array"): string | null {
  if (text.startsWith(type === "object" ? "{" : "[") && isJson(text)) return compactJson(text);
  if (!/^[[{(]/.test(text)) return null;
  const literal = parsePythonLiteral(text);
  return literal?.type === type ? literal.json : null;
}
