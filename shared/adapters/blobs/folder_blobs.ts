/** Blobs as files of one folder, a subfolder an owner (blob_folders.ts). Several processes may share it. */

import { VerbatimError } from "../../core/errors.ts";
import type { BlobOwner, BlobRef, BlobStore } from "../../ports/blob_store.ts";
import { hasExpired, ownerFolder } from "./blob_folders.ts";

/** Makes the adapter. The folder is made with the first blob. */
export function createFolderBlobs(path: string): BlobStore {
  const folderOf = (owner: BlobOwner): string => `${path}/${ownerFolder(owner)}`;
  return {
    async putBlob(owner, bytes) {
      const folder = folderOf(owner);
      const name = crypto.randomUUID();
      try {
        await Deno.mkdir(folder, { recursive: true });
        await writeDurably(`${folder}/${name}`, bytes);
      } catch (cause) {
        throw new VerbatimError("not_ready", "The folder of blobs can't be written", { cause });
      }
      return { name, bytes: bytes.byteLength };
    },

    async getBlob(owner, blob) {
      const bytes = await readWhole(`${folderOf(owner)}/${blob.name}`);
      if (bytes?.byteLength !== blob.bytes) throw notWhole(blob);
      return bytes;
    },

    async removeBlobs(owner) {
      await removeFolder(folderOf(owner));
    },

    async sweepBlobs(nowMs) {
      let removed = 0;
      for (const name of await foldersIn(path)) {
        if (!hasExpired(name, nowMs)) continue;
        await removeFolder(`${path}/${name}`);
        removed++;
      }
      return removed;
    },
  };
}

/** A file under its own name is whole and on the disk: a write that is cut short leaves another name. */
async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const unfinished = `${path}.part`;
  const file = await Deno.open(unfinished, { write: true, createNew: true });
  try {
    for (let written = 0; written < bytes.byteLength;) written += await file.write(bytes.subarray(written));
    await file.sync();
  } finally {
    file.close();
  }
  await Deno.rename(unfinished, path);
}

async function readWhole(path: string): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return await Deno.readFile(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return null;
    throw new VerbatimError("not_ready", "The folder of blobs can't be read", { cause });
  }
}

async function removeFolder(path: string): Promise<void> {
  await Deno.remove(path, { recursive: true }).catch((cause) => {
    // Somebody else was quicker, or it never was.
    if (!(cause instanceof Deno.errors.NotFound)) throw cause;
  });
}

async function foldersIn(path: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(path))).filter(({ isDirectory }) => isDirectory).map(({ name }) => name);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return [];
    throw cause;
  }
}

function notWhole({ name }: BlobRef): VerbatimError {
  return new VerbatimError("internal", `The stored bytes ${name} are missing or not whole.`);
}
