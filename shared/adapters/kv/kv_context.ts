/** What the parts of the KV store share: the database, the queue of writes, reads that wait out a lock, values as JSON. */

import { type ErrorCode, VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { type BusyRetry, retryWhileBusy } from "./kv_busy.ts";
import type { KvCommitQueue, KvSet } from "./kv_commit_queue.ts";
import { toHex } from "./kv_keys.ts";
import type { KvLimits } from "./kv_limits.ts";

/** How long after a task's end the database may begin to remove it. */
const BROOM_DELAY_MS = 3_600_000;

export interface KvContext {
  readonly kv: Deno.Kv;
  readonly queue: KvCommitQueue;
  readonly retry: BusyRetry;
  readonly limits: KvLimits;
  readonly clock: Clock;
  readonly logger: Logger | undefined;
  /** Unpredictable bytes. */
  readonly randomBytes: (length: number) => Uint8Array;
}

/** An entry as the store writes them: bytes, or nothing under that key. */
export type BytesEntry = Deno.KvEntryMaybe<Uint8Array>;

/** A random name of 32 hex digits. */
export function randomName(context: KvContext): string {
  return toHex(context.randomBytes(16));
}

/** Milliseconds from now after which the database may remove what belongs to this task. */
export function expireInMs(context: KvContext, task: Pick<TaskRecord, "expiresAtMs">): number {
  return Math.max(1, Math.ceil(task.expiresAtMs + BROOM_DELAY_MS - context.clock.now()));
}

/** A set of a JSON value that lives as long as its task. A value that is too large is an error of the given code. */
export function setOf(
  context: KvContext,
  entry: { key: Deno.KvKey; value: unknown; task: Pick<TaskRecord, "expiresAtMs"> },
): KvSet {
  const value = encodeJson(entry.value);
  refuseOversize(value, { what: `The entry ${String(entry.key[0])}`, limit: context.limits.maxValueBytes });
  return { key: entry.key, value, expireInMs: expireInMs(context, entry.task) };
}

/** Throws where `value` has more than `limit` bytes. */
export function refuseOversize(value: Uint8Array, options: { what: string; limit: number; code?: ErrorCode }): void {
  if (value.byteLength <= options.limit) return;
  throw new VerbatimError(
    options.code ?? "internal",
    `${options.what} takes ${value.byteLength} bytes; the store holds at most ${options.limit}.`,
    { details: { bytes: value.byteLength, limit: options.limit } },
  );
}

export function encodeJson(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Reads what {@linkcode encodeJson} wrote; the store reads nothing but its own writing. Anything else is an `internal` error. */
export function decodeJson<T>(bytes: Uint8Array): T {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    throw new VerbatimError("internal", "A stored value is no JSON text.", { cause });
  }
}

export function readEntry(context: KvContext, key: Deno.KvKey): Promise<BytesEntry> {
  return retryWhileBusy(() => context.kv.get<Uint8Array>(key), context.retry);
}

/** Entries of at most ten keys, in their order, read at one moment. */
export function readEntries(context: KvContext, keys: readonly Deno.KvKey[]): Promise<BytesEntry[]> {
  return retryWhileBusy(() => context.kv.getMany<Uint8Array[]>(keys), context.retry);
}

/** All entries of a selector, `batchSize` at a time. */
export function listEntries(
  context: KvContext,
  selector: Deno.KvListSelector,
  options: Deno.KvListOptions,
): Promise<Deno.KvEntry<Uint8Array>[]> {
  return retryWhileBusy(() => Array.fromAsync(context.kv.list<Uint8Array>(selector, options)), context.retry);
}
