/** Bytes of any size in Postgres, in parts. It does not know what they mean. */

import { Buffer } from "node:buffer";
import { VerbatimError } from "../../core/errors.ts";
import type { BlobOwner, BlobRef } from "../../ports/blob_store.ts";
import { type PgContext, randomName } from "./pg_context.ts";

/** Bytes of a part: a statement stays well below its time limit. Readers count by it, so it is never changed. */
const PART_BYTES = 4 * 1024 * 1024;

/** Writes bytes ahead of the record that will name them. Under a task that is dropped or gone nothing is written. */
export async function putPgBlob(context: PgContext, owner: BlobOwner, bytes: Uint8Array): Promise<BlobRef> {
  const name = randomName(context);
  for (let part = 0; part * PART_BYTES < bytes.byteLength; part++) {
    const own = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
    const bulk = Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString("base64");
    await context.database.run(({ sql }) =>
      sql`
        insert into verbatim.blobs (uid, name, part, bulk)
        select uid, ${name}, ${part}::integer, decode(${bulk}, 'base64')
        from verbatim.uids where uid = ${owner.uid} and not removed for key share
        on conflict (uid, name, part) do nothing
      `
    );
  }
  return { name, bytes: bytes.byteLength };
}

/** Reads a blob whole. A missing part or another length is an `internal` error. */
export async function getPgBlob(
  context: PgContext,
  owner: BlobOwner,
  blob: BlobRef,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(blob.bytes);
  const parts = Math.ceil(blob.bytes / PART_BYTES);
  for (let part = 0; part < parts; part++) {
    const [row] = await context.database.run(({ sql }) =>
      sql<{ bulk: string }[]>`
        select encode(bulk, 'base64') as bulk from verbatim.blobs
        where uid = ${owner.uid} and name = ${blob.name} and part = ${part}
      `
    );
    const own = row === undefined ? null : Buffer.from(row.bulk, "base64");
    if (own?.byteLength !== Math.min(PART_BYTES, blob.bytes - part * PART_BYTES)) {
      throw new VerbatimError("internal", `The stored bytes ${blob.name} are not whole: part ${part} is missing.`);
    }
    bytes.set(own, part * PART_BYTES);
  }
  return bytes;
}
