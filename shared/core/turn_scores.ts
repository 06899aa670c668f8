/**
 * A teacher's scores of one turn's sampled tokens, and their bytes. It does not know which teacher, or where they are kept.
 *
 * Layout, all numbers little-endian as on every machine that Deno runs on: six uint32 (mark, turn, tokens, K, bytes of one
 * logprob, 0), the logprobs, the top list's ids, the top list's logprobs.
 */

import { VerbatimError } from "./errors.ts";
import { packLogprobs } from "./turn_codec.ts";

/** What a teacher thinks of a turn of T sampled tokens. */
export interface TurnScores {
  /** The turn. */
  readonly turn: number;
  /** K: entries of each top list. */
  readonly topK: number;
  /** T values: log p_teacher(token | everything before it), raw. */
  readonly logprobs: Float32Array | Float64Array;
  /** T rows of K ids, by falling logprob. */
  readonly topkIndices: Int32Array;
  /** T rows of K logprobs. */
  readonly topkLogprobs: Float32Array;
}

/** "VTS1" as a little-endian uint32; read on a big-endian machine it differs, and is refused. */
const MARK = 0x31535456;
const HEADER_WORDS = 6;
const HEADER_BYTES = HEADER_WORDS * 4;

/** The scores as bytes. Arrays that do not fit each other are an `internal` error. */
export function encodeTurnScores(scores: TurnScores): Uint8Array<ArrayBuffer> {
  const { turn, topK, topkIndices, topkLogprobs } = scores;
  const logprobs = packLogprobs(scores.logprobs);
  const tokens = logprobs.length;
  if (topkIndices.length !== tokens * topK || topkLogprobs.length !== tokens * topK) {
    throw new VerbatimError(
      "internal",
      `The scores of turn ${turn} have no ${topK} entries for each of ${tokens} tokens.`,
    );
  }
  const arrays = [logprobs, topkIndices, topkLogprobs];
  const bytes = new Uint8Array(arrays.reduce((sum, array) => sum + array.byteLength, HEADER_BYTES));
  new Uint32Array(bytes.buffer, 0, HEADER_WORDS).set([MARK, turn, tokens, topK, logprobs.BYTES_PER_ELEMENT, 0]);
  let offset = HEADER_BYTES;
  for (const array of arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset);
    offset += array.byteLength;
  }
  return bytes;
}

/** Reads what {@linkcode encodeTurnScores} made. The arrays are copies; bytes of another form are an `internal` error. */
export function decodeTurnScores(bytes: Uint8Array): TurnScores {
  if (bytes.byteLength < HEADER_BYTES) throw damaged();
  const [mark, turn, tokens, topK, width, reserved] = new Uint32Array(bytes.slice(0, HEADER_BYTES).buffer);
  if (mark !== MARK || reserved !== 0 || (width !== 4 && width !== 8)) throw damaged();
  const logprobBytes = tokens! * width;
  const tableBytes = tokens! * topK! * 4;
  if (bytes.byteLength !== HEADER_BYTES + logprobBytes + 2 * tableBytes) throw damaged();
  const at = (from: number, length: number): ArrayBuffer => new Uint8Array(bytes.subarray(from, from + length)).buffer;
  const logprobs = at(HEADER_BYTES, logprobBytes);
  return {
    turn: turn!,
    topK: topK!,
    logprobs: width === 4 ? new Float32Array(logprobs) : new Float64Array(logprobs),
    topkIndices: new Int32Array(at(HEADER_BYTES + logprobBytes, tableBytes)),
    topkLogprobs: new Float32Array(at(HEADER_BYTES + logprobBytes + tableBytes, tableBytes)),
  };
}

function damaged(): VerbatimError {
  return new VerbatimError(
    "internal",
    "Stored scores can't be read: their bytes are not of the form that was written.",
  );
}
