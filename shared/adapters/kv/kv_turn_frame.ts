/**
 * The value under a turn's key: its record, where its bulk is, and the bulk itself where it fits. Layout: two
 * little-endian uint32 (mark, bytes of the head), the head as JSON, the bulk if it is inside.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { TurnRecord } from "../../core/turn.ts";
import type { BlobRef } from "./kv_blobs.ts";
import { decodeJson, encodeJson } from "./kv_context.ts";

export interface TurnHead {
  /** The record, or where it is: a record may carry a grammar of any size. */
  readonly record: TurnRecord | null;
  readonly recordBlob: BlobRef | null;
  /** `chunks` is 0 where the bulk is inside; `blobId` names the attempt all the same. */
  readonly bulk: BlobRef;
}

export interface TurnFrame {
  readonly head: TurnHead;
  /** The bulk, or null where it is in chunks. */
  readonly inside: Uint8Array | null;
}

/** "VTF1" as a little-endian uint32. */
const MARK = 0x31465456;
const PREFIX_BYTES = 8;

export function encodeTurnFrame(head: TurnHead, inside: Uint8Array | null): Uint8Array {
  const headBytes = encodeJson(head);
  const bytes = new Uint8Array(PREFIX_BYTES + headBytes.byteLength + (inside?.byteLength ?? 0));
  new Uint32Array(bytes.buffer, 0, 2).set([MARK, headBytes.byteLength]);
  bytes.set(headBytes, PREFIX_BYTES);
  if (inside !== null) bytes.set(inside, PREFIX_BYTES + headBytes.byteLength);
  return bytes;
}

/** Reads what {@linkcode encodeTurnFrame} made; anything else is an `internal` error. */
export function decodeTurnFrame(bytes: Uint8Array): TurnFrame {
  if (bytes.byteLength < PREFIX_BYTES) throw new VerbatimError("internal", "A stored turn's value is cut short.");
  const [mark, headBytes] = new Uint32Array(bytes.slice(0, PREFIX_BYTES).buffer);
  if (mark !== MARK) throw new VerbatimError("internal", "A stored turn's value is of an unknown form.");
  const end = PREFIX_BYTES + headBytes!;
  const head = decodeJson<TurnHead>(bytes.subarray(PREFIX_BYTES, end));
  if (head.bulk.chunks > 0) return { head, inside: null };
  const inside = bytes.subarray(end);
  if (inside.byteLength !== head.bulk.bytes) throw new VerbatimError("internal", "A stored turn's bulk is not whole.");
  return { head, inside };
}
