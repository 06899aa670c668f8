/** What the parts of the Postgres store share: the database, limits, names, values as the statements take them. */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { type ErrorCode, VerbatimError } from "../../core/errors.ts";
import type { PgDatabase } from "./pg_database.ts";
import type { PgLimits } from "./pg_limits.ts";

export interface PgContext {
  readonly database: PgDatabase;
  readonly limits: PgLimits;
  /** Unpredictable bytes. */
  readonly randomBytes: (length: number) => Uint8Array;
}

/** A random name of 32 hex digits. */
export function randomName(context: PgContext): string {
  return Buffer.from(context.randomBytes(16)).toString("hex");
}

/** A value as JSON text, for a parameter that is cast by `::text::json`. Text of more than `limit` bytes is an error of the given code. */
export function jsonText(value: unknown, options: { what: string; limit: number; code?: ErrorCode }): string {
  const text = JSON.stringify(value);
  // A UTF-16 unit is at most three bytes: only what may be too long is counted.
  if (text.length * 3 > options.limit) {
    const bytes = new TextEncoder().encode(text).byteLength;
    if (bytes > options.limit) throw oversize(bytes, options);
  }
  return text;
}

/** The error of what is larger than the store keeps. */
export function oversize(bytes: number, options: { what: string; limit: number; code?: ErrorCode }): VerbatimError {
  const { what, limit, code = "internal" } = options;
  return new VerbatimError(code, `${what} takes ${bytes} bytes; the store holds at most ${limit}.`, {
    details: { bytes, limit },
  });
}

/** Texts as the literal of a `text[]`. */
export function textArray(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

/** SHA-256 of a name of any length. Names that differ in lone surrogates alone stay apart. */
export function nameHash(name: string): Uint8Array {
  return createHash("sha256").update(JSON.stringify(name)).digest();
}
