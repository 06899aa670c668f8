/** Where the bytes of a task are kept: in the task store up to a limit, in a place of their own beyond. It does not know what they mean. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { KeptBlob } from "../../core/turn_extras.ts";
import type { Blobs, BlobStore } from "../../ports/blob_store.ts";

/** What is needed. */
export interface KeptBlobsOptions {
  readonly store: Blobs;
  /** Null: everything is kept in the store. */
  readonly outside: BlobStore | null;
  /** Most bytes of a blob that is kept in the store, where there is another place. */
  readonly limitBytes: number;
}

/** Keeps and finds blobs. */
export class KeptBlobs {
  readonly #options: KeptBlobsOptions;

  constructor(options: KeptBlobsOptions) {
    this.#options = options;
  }

  /** Keeps bytes; the record that will name them is written afterwards. */
  async put(task: TaskRecord, bytes: Uint8Array): Promise<KeptBlob> {
    const { store, outside, limitBytes } = this.#options;
    if (outside === null || bytes.byteLength <= limitBytes) {
      return { place: "store", ...await store.putBlob(task, bytes) };
    }
    return { place: "outside", ...await outside.putBlob(task, bytes) };
  }

  /** The bytes, all of them or an error. */
  async get(task: TaskRecord, blob: KeptBlob): Promise<Uint8Array<ArrayBuffer>> {
    const { store, outside } = this.#options;
    if (blob.place === "store") return await store.getBlob(task, blob);
    if (outside === null) {
      throw new VerbatimError("internal", "Bytes of this task lie outside of the store; set BLOB_PATH or BLOB_S3_URL");
    }
    return await outside.getBlob(task, blob);
  }

  /** Removes what lies outside of a task's store; what lies in the store goes with the task. */
  async removeOutside(task: TaskRecord): Promise<void> {
    if ((task.settings.captureExtras ?? []).length > 0) await this.#options.outside?.removeBlobs(task);
  }

  /** Removes what lies outside and has expired; of how many tasks. */
  async sweepOutside(nowMs: number): Promise<number> {
    return await this.#options.outside?.sweepBlobs(nowMs) ?? 0;
  }
}
