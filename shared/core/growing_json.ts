/**
 * JSON bodies of which the next is the one before with more at the end of one list: what is known is not parsed again.
 * The result is that of `JSON.parse` over the whole text. It knows neither requests nor messages.
 */

import { Buffer } from "node:buffer";

/** A body as it was parsed. Costs its bytes and what was parsed of its list. */
export interface KnownJson {
  /** The whole text, UTF-8. */
  readonly bytes: Uint8Array;
  /** The top-level field that holds the list. */
  readonly field: string;
  /** Offset after the list's bracket. */
  readonly start: number;
  /** Offset after each item. */
  readonly ends: readonly number[];
  /** The items. */
  readonly items: readonly unknown[];
}

/** A parsed body. */
export interface GrownJson {
  /** The value. Items that are known are the same objects as before. */
  readonly value: unknown;
  /** Leading items that were not parsed again. */
  readonly knownItems: number;
  /** What to keep for the next body; null where none of the fields holds a list. */
  readonly known: KnownJson | null;
}

/**
 * Parses a body whose list stands in the first of `fields` that holds one. A body that is no JSON throws a
 * `SyntaxError`, one that is not UTF-8 a `TypeError`.
 */
export function parseGrowing(
  bytes: Uint8Array,
  fields: readonly string[],
  known: KnownJson | null = null,
): GrownJson {
  const shared = known === null ? 0 : sharedItems(bytes, known);
  return (shared === 0 ? null : parseFrom(bytes, known!, shared)) ?? parseWhole(bytes, fields);
}

/** Number of leading items that a body has, byte for byte, in the same place as a known one. */
export function sharedItems(bytes: Uint8Array, known: KnownJson): number {
  const same = commonLength(bytes, known.bytes);
  let [low, high] = [0, known.ends.length];
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (known.ends[middle - 1]! <= same) low = middle;
    else high = middle - 1;
  }
  return low;
}

function parseWhole(bytes: Uint8Array, fields: readonly string[]): GrownJson {
  const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  const nothing = { value, knownItems: 0, known: null };
  if (!isRecord(value)) return nothing;
  const field = fields.find((name) => Array.isArray(value[name]));
  if (field === undefined) return nothing;
  const items: unknown = value[field];
  const list = findList(bytes, field);
  if (list === null || !Array.isArray(items) || list.ends.length !== items.length) return nothing;
  return { value, knownItems: 0, known: { bytes, field, ...list, items } };
}

/**
 * Parses a null in the place of the known items. What comes before them was parsed with them once, and what comes after
 * them can't change what they are: it is the rest of their list, and no second list of that name.
 */
function parseFrom(bytes: Uint8Array, known: KnownJson, shared: number): GrownJson | null {
  const { field, start } = known;
  const end = known.ends[shared - 1]!;
  const head = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, start));
  let value: unknown;
  try {
    const tail = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(end));
    value = JSON.parse(`${head}null${tail}`);
  } catch {
    // The whole says best what is wrong with it.
    return null;
  }
  const list = endsOfItems(bytes, end);
  const rest: unknown = isRecord(value) ? value[field] : null;
  if (!isRecord(value) || !Array.isArray(rest) || findField(bytes, list.after, field) !== "absent") return null;
  const items = [...known.items.slice(0, shared), ...rest.slice(1)];
  value[field] = items;
  const ends = [...known.ends.slice(0, shared), ...list.ends];
  return { value, knownItems: shared, known: { bytes, field, start, ends, items } };
}

const LARGEST_BLOCK = 1 << 16;
const SMALLEST_BLOCK = 1 << 6;

/** Number of leading bytes in common: by blocks as long as they are equal, then by smaller ones. */
function commonLength(left: Uint8Array, right: Uint8Array): number {
  const most = Math.min(left.length, right.length);
  let at = 0;
  for (let block = LARGEST_BLOCK; block >= SMALLEST_BLOCK; block >>>= 2) {
    while (at + block <= most && Buffer.compare(left.subarray(at, at + block), right.subarray(at, at + block)) === 0) {
      at += block;
    }
  }
  while (at < most && left[at] === right[at]) at++;
  return at;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Where the list of a top-level field stands in valid JSON; null where it can't be told for certain. */
function findList(bytes: Uint8Array, field: string): { readonly start: number; readonly ends: number[] } | null {
  const at = findField(bytes, bytes.indexOf(OPEN_OBJECT) + 1, field);
  if (typeof at === "string" || bytes[at] !== OPEN_LIST) return null;
  const { ends, after } = endsOfItems(bytes, at + 1);
  return findField(bytes, after, field) === "absent" ? { start: at + 1, ends } : null;
}

/** The offset of a member's value among the top-level members from here on. A key with an escape may be any key. */
function findField(bytes: Uint8Array, at: number, field: string): number | "absent" | "unclear" {
  const name = new TextEncoder().encode(field);
  for (;;) {
    at = afterSpace(bytes, at);
    if (bytes[at] === COMMA) at = afterSpace(bytes, at + 1);
    if (bytes[at] !== QUOTE) return "absent";
    const keyEnd = afterString(bytes, at);
    const key = bytes.subarray(at + 1, keyEnd - 1);
    if (key.includes(BACKSLASH)) return "unclear";
    at = afterSpace(bytes, bytes.indexOf(COLON, keyEnd) + 1);
    if (key.length === name.length && key.every((byte, k) => byte === name[k])) return at;
    at = afterValue(bytes, at);
  }
}

/** The offset after each item from here to the list's end, and after the list. `at` is after the bracket, or after an item. */
function endsOfItems(bytes: Uint8Array, at: number): { readonly ends: number[]; readonly after: number } {
  const ends: number[] = [];
  at = afterSpace(bytes, at);
  while (at < bytes.length && bytes[at] !== CLOSE_LIST) {
    if (bytes[at] === COMMA) at = afterSpace(bytes, at + 1);
    at = afterValue(bytes, at);
    ends.push(at);
    at = afterSpace(bytes, at);
  }
  return { ends, after: at + 1 };
}

/** The offset after a value. */
function afterValue(bytes: Uint8Array, at: number): number {
  if (bytes[at] === QUOTE) return afterString(bytes, at);
  for (let depth = 0; at < bytes.length;) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = afterString(bytes, at);
      continue;
    }
    if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth++;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      // Closes what the value stands in.
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && (byte === COMMA || isSpace(byte))) return at;
    at++;
  }
  return at;
}

/** The offset after a string; `at` is its first quote. */
function afterString(bytes: Uint8Array, at: number): number {
  for (let end = bytes.indexOf(QUOTE, at + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1)) {
    let escapes = 0;
    while (bytes[end - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  return bytes.length;
}

function afterSpace(bytes: Uint8Array, at: number): number {
  while (at < bytes.length && isSpace(bytes[at]!)) at++;
  return at;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
