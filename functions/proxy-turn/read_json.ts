/** Reading parsed JSON of unknown shape, for the dialect readers: every refusal names the field and the reason. */

import { createHash } from "node:crypto";
import { digest } from "../../shared/core/digest.ts";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { ContentPart, Json } from "../../shared/core/message.ts";

/** A JSON object of unknown members. */
export type JsonObject = { readonly [key: string]: unknown };

/** An error that names a field of the request and what is wrong with it. */
export function invalid(field: string, reason: string): VerbatimError {
  return new VerbatimError("invalid_request", `Field "${field}": ${reason}`, { details: { field, reason } });
}

/** An error for something that is well formed and cannot be honoured. */
export function unsupported(field: string, reason: string): VerbatimError {
  return new VerbatimError("unsupported", `Field "${field}": ${reason}`, { details: { field, reason } });
}

/** Whether a value is an object and no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object. */
export function asObject(value: unknown, field: string): JsonObject {
  if (isObject(value)) return value;
  throw invalid(field, `must be an object, not ${kindOf(value)}`);
}

/** The value as a list; null and missing are an empty one. */
export function asList(value: unknown, field: string): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw invalid(field, `must be a list, not ${kindOf(value)}`);
}

/** The value as text. */
export function asText(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  throw invalid(field, `must be a string, not ${kindOf(value)}`);
}

/** The value as text; null and missing are `""`. */
export function asOptionalText(value: unknown, field: string): string {
  return value === null || value === undefined ? "" : asText(value, field);
}

/** Deeper values are refused: nothing that a template or an engine reads is nested like that. */
const MAX_DEPTH = 200;

/** Whether a value is a JSON value of reasonable depth. What was parsed from JSON is a JSON value. */
export function isJson(value: unknown, depth = 0): value is Json {
  if (value === null || typeof value === "string" || typeof value === "boolean" || typeof value === "number") {
    return true;
  }
  if (typeof value !== "object" || depth > MAX_DEPTH) return false;
  return Object.values(value).every((item) => isJson(item, depth + 1));
}

/** The value as an object of JSON values; null and missing are an empty one. */
export function asJsonObject(value: unknown, field: string): { readonly [key: string]: Json } {
  if (value === null || value === undefined) return {};
  if (!isObject(value)) throw invalid(field, `must be an object, not ${kindOf(value)}`);
  if (isJson(value) && isMembers(value)) return value;
  throw invalid(field, `must not be nested deeper than ${MAX_DEPTH}`);
}

function isMembers(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Arguments of a call as JSON text: text as it is, a value as it would be written, nothing as `""`. */
export function asArguments(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") throw invalid(field, `must be JSON text or an object, not ${kindOf(value)}`);
  if (isJson(value)) return JSON.stringify(value);
  throw invalid(field, `must not be nested deeper than ${MAX_DEPTH}`);
}

/** An image by its URL. The hash is of the bytes where the URL holds them, else of the URL. */
export function imagePart(url: string): ContentPart {
  const base64 = /^data:[^,]*;base64,/.exec(url);
  const hash = createHash("sha256");
  if (base64 === null) hash.update(url);
  else hash.update(url.slice(base64[0].length), "base64");
  return { type: "image", sha256: hash.digest("hex"), url };
}

/** One line that two messages share if and only if they are written alike. */
export function formLine(...written: readonly unknown[]): string {
  return digest(JSON.stringify(written));
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "missing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
