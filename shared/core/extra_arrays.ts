/** The arrays among a turn's extras: joined along a generation, and as bytes. It does not know who made them. */

import { VerbatimError } from "./errors.ts";

/** Which experts consecutive positions were routed to. */
export interface Experts {
  /** The position of the first row. */
  readonly start: number;
  /** Number of rows, one a position. */
  readonly rows: number;
  /** The rows as the engine sent them: int32, little-endian, all of one width. */
  readonly bytes: Uint8Array;
}

/** Which ids each of T tokens was chosen from. */
export interface TopPIds {
  /** T + 1 values from 0: those of token t are `ids` from `offsets[t]` to `offsets[t + 1]`. */
  readonly offsets: Int32Array;
  /** The ids, token by token. */
  readonly ids: Int32Array;
}

/** Values of one row; 0 without rows. */
export function expertsWidth({ rows, bytes }: Pick<Experts, "rows" | "bytes">): number {
  return rows === 0 ? 0 : bytes.byteLength / 4 / rows;
}

/** Parts that follow each other as one, or null where they leave a hole, overlap, or differ in width. */
export function joinExperts(parts: readonly Experts[]): Experts | null {
  const [first, ...others] = parts.filter(({ rows }) => rows > 0);
  if (first === undefined) return parts[0] ?? null;
  let rows = first.rows;
  for (const part of others) {
    if (part.start !== first.start + rows || expertsWidth(part) !== expertsWidth(first)) return null;
    rows += part.rows;
  }
  if (others.length === 0) return first;
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part.bytes, at);
    at += part.bytes.byteLength;
  }
  return { start: first.start, rows, bytes };
}

/** The tokens of all parts, one part after the other. */
export function joinTopPIds(parts: readonly TopPIds[]): TopPIds {
  const offsets = new Int32Array(parts.reduce((sum, part) => sum + part.offsets.length - 1, 1));
  const ids = new Int32Array(parts.reduce((sum, part) => sum + part.ids.length, 0));
  let [token, at] = [0, 0];
  for (const part of parts) {
    for (let t = 1; t < part.offsets.length; t++) offsets[++token] = at + part.offsets[t]!;
    ids.set(part.ids, at);
    at += part.ids.length;
  }
  return { offsets, ids };
}

/** Offsets, then ids, little-endian as on every machine that Deno runs on. */
export function encodeTopPIds({ offsets, ids }: TopPIds): Uint8Array<ArrayBuffer> {
  const values = new Int32Array(offsets.length + ids.length);
  values.set(offsets);
  values.set(ids, offsets.length);
  return new Uint8Array(values.buffer);
}

/** Reads what {@linkcode encodeTopPIds} made of this many tokens and ids; other bytes are an `internal` error. */
export function decodeTopPIds(bytes: Uint8Array, size: { readonly tokens: number; readonly ids: number }): TopPIds {
  if (bytes.byteLength !== (size.tokens + 1 + size.ids) * 4) {
    throw new VerbatimError("internal", "Stored ids of top-p sampling can't be read: they have another length.");
  }
  const values = new Int32Array(bytes.slice().buffer);
  return { offsets: values.subarray(0, size.tokens + 1), ids: values.subarray(size.tokens + 1) };
}
