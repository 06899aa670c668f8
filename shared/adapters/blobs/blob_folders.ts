/** How blobs lie in a folder or bucket: one folder an owner, its name beginning with the owner's end. It reads and writes nothing. */

import type { BlobOwner } from "../../ports/blob_store.ts";

/** Digits of an epoch in milliseconds: with zeros in front, names sort by time for thousands of years. */
const DIGITS = 15;
const NAME = /^(\d{15})-[\w-]+$/;

/** The folder of an owner: its end as milliseconds, then its uid. A sweep needs no other index. */
export function ownerFolder(owner: BlobOwner): string {
  return `${String(Math.ceil(owner.expiresAtMs)).padStart(DIGITS, "0")}-${owner.uid}`;
}

/** Whether a folder is one of an owner that expired at `nowMs` or before. Other names are nobody's business. */
export function hasExpired(folder: string, nowMs: number): boolean {
  const digits = NAME.exec(folder)?.[1];
  return digits !== undefined && Number(digits) <= nowMs;
}
