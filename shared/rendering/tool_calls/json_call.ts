/** Turns a scanned JSON object into a call (rule 7). It knows neither markers nor tools. */

import type { JsonScanner } from "./json_scanner.ts";
import type { ReadCall } from "./message_sink.ts";
import type { TextCursor } from "./text_cursor.ts";

/** The keys that carry a call's parts, the preferred one first. */
export interface NamedKeys {
  readonly type: "named";
  readonly name: readonly string[];
  readonly arguments: readonly string[];
  /** An object without arguments is no call. */
  readonly needsArguments?: true;
}

/** How a call's object states its parts; `any` is an object with one member, whose key is the name. */
export type CallKeys = NamedKeys | { readonly type: "any" };

/** The keys of most formats. */
export const COMMON_KEYS: NamedKeys = { type: "named", name: ["name"], arguments: ["arguments", "parameters"] };

/** The call that a scanned object states, or null. A missing argument object is `{}`, a missing name `knownName` unless that is "". */
export function callOfJson(
  cursor: TextCursor,
  scanner: JsonScanner,
  keys: CallKeys,
  knownName: string,
): ReadCall | null {
  if (keys.type === "any") {
    const member = scanner.members[0];
    if (member === undefined || scanner.members.length !== 1) return null;
    const name = stringOf(cursor.slice(member.keyFrom, member.keyTo));
    const value = argumentsOf(cursor.slice(member.from, member.to));
    return name && value !== null ? { name, arguments: value } : null;
  }
  const byKey = membersByKey(cursor, scanner);
  const nameText = firstOf(byKey, keys.name);
  const name = nameText === undefined ? knownName : stringOf(nameText);
  const argumentText = firstOf(byKey, keys.arguments);
  if (!name || (argumentText === undefined && keys.needsArguments)) return null;
  const value = argumentText === undefined ? "{}" : argumentsOf(argumentText);
  return value === null ? null : { name, arguments: value };
}

/** Whether an object that is broken or cut off has the keys of a call. */
export function seemsCall(cursor: TextCursor, scanner: JsonScanner, keys: NamedKeys): boolean {
  const written = scanner.openKey === null ? scanner.members : [...scanner.members, scanner.openKey];
  const names = new Set(written.map(({ keyFrom, keyTo }) => stringOf(cursor.slice(keyFrom, keyTo))));
  return keys.name.some((key) => names.has(key)) && keys.arguments.some((key) => names.has(key));
}

/** The raw JSON texts of a scanned object's members by key; the last of a repeated key. */
function membersByKey(cursor: TextCursor, scanner: JsonScanner): Map<string, string> {
  const byKey = new Map<string, string>();
  for (const { keyFrom, keyTo, from, to } of scanner.members) {
    const key = stringOf(cursor.slice(keyFrom, keyTo));
    if (key !== null) byKey.set(key, cursor.slice(from, to));
  }
  return byKey;
}

/** The argument object's text: the JSON object itself, or the one that a JSON string holds; null for anything else. */
export function argumentsOf(json: string): string | null {
  if (json.startsWith("{")) return json;
  const inner = json.startsWith('"') ? stringOf(json) : null;
  return inner !== null && isJsonObject(inner) ? inner.trim() : null;
}

function firstOf(byKey: ReadonlyMap<string, string>, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const value = byKey.get(key);
    if (value !== undefined) return value;
  }
  return undefined;
}

function stringOf(json: string): string | null {
  if (!json.startsWith('"')) return null;
  const value: unknown = JSON.parse(json);
  return typeof value === "string" ? value : null;
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
