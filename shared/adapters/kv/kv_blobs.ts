/** Bytes of any size as chunks under one random name. It does not know what the bytes mean. */

import { VerbatimError } from "../../core/errors.ts";
import type { BlobOwner, BlobRef as NamedBlob } from "../../ports/blob_store.ts";
import type { KvSet } from "./kv_commit_queue.ts";
import { expireInMs, type KvContext, listEntries, randomName } from "./kv_context.ts";
import { keyBytesAtMost, kvKeys } from "./kv_keys.ts";

/** Where bytes are. A blob that no record names does not exist. */
export interface BlobRef {
  readonly blobId: string;
  readonly chunks: number;
  readonly bytes: number;
}

/** Chunks read from the database at a time (about 4 MB). */
const READ_BATCH = 64;

/** The bytes as views of chunk size, none copied. */
export function chunksOf(context: KvContext, bytes: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let start = 0; start < bytes.byteLength; start += context.limits.chunkBytes) {
    chunks.push(bytes.subarray(start, start + context.limits.chunkBytes));
  }
  return chunks;
}

export function refOf(blobId: string, chunks: readonly Uint8Array[]): BlobRef {
  return { blobId, chunks: chunks.length, bytes: chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0) };
}

/** The sets that store these chunks. */
export function blobSets(
  context: KvContext,
  blob: { task: BlobOwner; blobId: string; chunks: readonly Uint8Array[] },
): KvSet[] {
  const expires = expireInMs(context, blob.task);
  return blob.chunks.map((value, index) => ({
    key: kvKeys.blob(blob.task.uid, blob.blobId, index),
    value,
    expireInMs: expires,
  }));
}

/** Writes chunks ahead of the record that will name them, in as few atomic writes as they fit into. */
export async function writeBlob(
  context: KvContext,
  blob: { task: BlobOwner; blobId: string; chunks: readonly Uint8Array[] },
): Promise<void> {
  const sets = blobSets(context, blob);
  const widest = sets.reduce((most, { key, value }) => Math.max(most, keyBytesAtMost(key) + value.byteLength), 1);
  const perWrite = Math.max(1, Math.floor(context.limits.maxAtomicBytes / widest));
  const writes: Promise<unknown>[] = [];
  for (let start = 0; start < sets.length; start += perWrite) {
    writes.push(
      context.queue.commit({ checks: [], sets: sets.slice(start, start + perWrite), deletes: [], claims: [] }),
    );
  }
  await Promise.all(writes);
}

/** Keeps bytes under a task; the name says in how many chunks, since limits may change. */
export async function putKvBlob(context: KvContext, owner: BlobOwner, bytes: Uint8Array): Promise<NamedBlob> {
  const chunks = chunksOf(context, bytes);
  const blobId = randomName(context);
  await writeBlob(context, { task: owner, blobId, chunks });
  return { name: `${blobId}.${chunks.length}`, bytes: bytes.byteLength };
}

/** Reads what {@linkcode putKvBlob} kept. */
export async function getKvBlob(
  context: KvContext,
  owner: BlobOwner,
  blob: NamedBlob,
): Promise<Uint8Array<ArrayBuffer>> {
  const [blobId, chunks] = blob.name.split(".");
  return await readBlob(context, owner.uid, { blobId: blobId ?? "", chunks: Number(chunks), bytes: blob.bytes });
}

/** Reads a blob whole. A missing chunk or another length is an `internal` error. */
export async function readBlob(context: KvContext, uid: string, ref: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
  const entries = await listEntries(context, {
    start: kvKeys.blob(uid, ref.blobId, 0),
    end: kvKeys.blob(uid, ref.blobId, ref.chunks),
  }, { batchSize: READ_BATCH });
  const bytes = new Uint8Array(ref.bytes);
  let offset = 0;
  for (const [index, { key, value }] of entries.entries()) {
    if (key[3] !== index || offset + value.byteLength > ref.bytes) throw incomplete(ref);
    bytes.set(value, offset);
    offset += value.byteLength;
  }
  if (entries.length !== ref.chunks || offset !== ref.bytes) throw incomplete(ref);
  return bytes;
}

function incomplete(ref: BlobRef): VerbatimError {
  return new VerbatimError(
    "internal",
    `The stored bytes ${ref.blobId} are not whole; all ${ref.chunks} chunks must be.`,
  );
}
