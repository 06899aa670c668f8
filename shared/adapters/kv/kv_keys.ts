/** The keys of the KV store, all in one place (STORAGE.md). It knows no values. */

/** Longest task, group, call or digest name that stands in a key as it is, in UTF-16 units; longer ones stand as their hash. */
const LONGEST_PART = 256;

/** Prefixes under which everything of one task's uid lies, beside its record, key and group index. */
export const UID_TABLES = ["turn", "blob", "repeat", "call", "event", "scores"] as const;

export const kvKeys = {
  secret: (): Deno.KvKey => ["secret"],
  task: (taskId: string): Deno.KvKey => ["task", taskId],
  key: (keyHash: string): Deno.KvKey => ["key", keyHash],
  /** `part` from {@linkcode boundedKeyPart}. */
  group: (part: string, taskId: string): Deno.KvKey => ["group", part, taskId],
  /** `hash` from {@linkcode sha256Hex}. */
  idempotency: (hash: string): Deno.KvKey => ["idempotency", hash],
  turn: (uid: string, turn: number): Deno.KvKey => ["turn", uid, turn],
  blob: (uid: string, blobId: string, chunk: number): Deno.KvKey => ["blob", uid, blobId, chunk],
  repeat: (uid: string, digest: string): Deno.KvKey => ["repeat", uid, digest],
  call: (uid: string, callId: string): Deno.KvKey => ["call", uid, callId],
  event: (uid: string, ulid: string): Deno.KvKey => ["event", uid, ulid],
  scores: (uid: string, teacher: string, turn: number): Deno.KvKey => ["scores", uid, teacher, turn],
  /** The beginning of a task's keys of scores, of one teacher where it is named. */
  scoresOf: (uid: string, ...teacher: [] | [string]): Deno.KvKey => ["scores", uid, ...teacher],
  removal: (uid: string): Deno.KvKey => ["removal", uid],
} as const;

/** SHA-256 of a text's UTF-8, hex. */
export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return toHex(new Uint8Array(digest));
}

/** Bytes as lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A text as a part of a key: itself, or its hash where it is too long for one. */
export async function boundedKeyPart(text: string): Promise<string> {
  return text.length <= LONGEST_PART ? text : `sha256:${await sha256Hex(text)}`;
}

/** Most bytes that a key can take when encoded: three a UTF-16 unit, and a little for each part. */
export function keyBytesAtMost(key: Deno.KvKey): number {
  let bytes = 0;
  for (const part of key) bytes += typeof part === "string" ? part.length * 3 + 2 : 9;
  return bytes;
}
