/** Bytes of any size, kept under the task they belong to. Adapters: folder_blobs, s3_blobs; every task store keeps blobs too. */

/** Whose bytes they are. What is kept under an owner goes with it. */
export interface BlobOwner {
  /** Random per task, of letters, digits and hyphens; never used again. */
  readonly uid: string;
  /** When the owner stops to exist; fixed. */
  readonly expiresAtMs: number;
}

/** A blob as its record names it. A blob that no record names does not exist, and goes with its owner. */
export interface BlobRef {
  /** Random per attempt; only the store that wrote it reads it. */
  readonly name: string;
  readonly bytes: number;
}

/** Where blobs are written and read. */
export interface Blobs {
  /**
   * Writes bytes under a new name, and resolves when they are durable. What is put under an owner that is gone already
   * is never read, and goes at the owner's expiry at the latest.
   */
  putBlob(owner: BlobOwner, bytes: Uint8Array): Promise<BlobRef>;
  /** The bytes, all of them. Missing bytes, or other ones in number, are an error (`internal`), never a shorter answer. */
  getBlob(owner: BlobOwner, blob: BlobRef): Promise<Uint8Array<ArrayBuffer>>;
}

/** A place of its own for blobs, which knows no tasks. */
export interface BlobStore extends Blobs {
  /** Removes everything under an owner. May be called again. */
  removeBlobs(owner: BlobOwner): Promise<void>;
  /** Removes everything of owners that expired at `nowMs` or before; how many owners. */
  sweepBlobs(nowMs: number): Promise<number>;
}
