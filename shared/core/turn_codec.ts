/**
 * A turn's bulk as bytes and back: its arrays bit for bit, its detail as JSON. It knows neither records nor where the
 * bytes are kept.
 *
 * Layout, all numbers little-endian as on every machine that Deno runs on: six uint32 (mark, bytes of one logprob,
 * observation length, completion length, detail bytes, 0), the logprobs, the observation, the completion, the detail.
 */

import { VerbatimError } from "./errors.ts";
import type { Turn, TurnDetail } from "./turn.ts";

/** What of a turn is of any size: everything but its record. */
export type TurnBulk = Pick<Turn, "detail" | "observation" | "completion" | "logprobs">;

/** "VTB1" as a little-endian uint32; read on a big-endian machine it differs, and is refused. */
const MARK = 0x31425456;
const HEADER_WORDS = 6;
const HEADER_BYTES = HEADER_WORDS * 4;

/**
 * The smallest typed array that holds these values bit for bit: float32 where `Math.fround(x) === x` for every value,
 * float64 otherwise. A float32 array is returned as it is; anything else is copied.
 */
export function packLogprobs(values: ArrayLike<number>): Float32Array | Float64Array {
  if (values instanceof Float32Array) return values;
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!;
    if (Math.fround(value) !== value) return Float64Array.from(values);
  }
  return Float32Array.from(values);
}

/** Packs a turn's arrays and detail. Logprobs and completion of different lengths are an `internal` error. */
export function encodeTurnBulk(bulk: TurnBulk): Uint8Array<ArrayBuffer> {
  const { observation, completion } = bulk;
  const logprobs = packLogprobs(bulk.logprobs);
  if (logprobs.length !== completion.length) {
    throw new VerbatimError(
      "internal",
      `A turn of ${completion.length} sampled tokens carries ${logprobs.length} logprobs; it must carry one a token.`,
    );
  }
  const detail = new TextEncoder().encode(JSON.stringify(bulk.detail));
  const arrays = HEADER_BYTES + logprobs.byteLength + observation.byteLength + completion.byteLength;
  const bytes = new Uint8Array(arrays + detail.byteLength);
  new Uint32Array(bytes.buffer, 0, HEADER_WORDS).set([
    MARK,
    logprobs.BYTES_PER_ELEMENT,
    observation.length,
    completion.length,
    detail.byteLength,
    0,
  ]);
  let offset = HEADER_BYTES;
  for (const part of [logprobs, observation, completion, detail]) {
    bytes.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), offset);
    offset += part.byteLength;
  }
  return bytes;
}

/** Reads what {@linkcode encodeTurnBulk} made. The arrays are copies; bytes of another layout or length are an `internal` error. */
export function decodeTurnBulk(bytes: Uint8Array): TurnBulk {
  if (bytes.byteLength < HEADER_BYTES) throw damaged(`it has ${bytes.byteLength} bytes`);
  const [mark, logprobBytes, observations, completions, detailBytes, reserved] = new Uint32Array(
    bytes.slice(0, HEADER_BYTES).buffer,
  );
  if (mark !== MARK || reserved !== 0 || (logprobBytes !== 4 && logprobBytes !== 8)) {
    throw damaged("its header is of an unknown form");
  }
  const lengths = [completions! * logprobBytes, observations! * 4, completions! * 4, detailBytes!];
  const total = lengths.reduce((sum, length) => sum + length, HEADER_BYTES);
  if (total !== bytes.byteLength) throw damaged(`it has ${bytes.byteLength} bytes and its header names ${total}`);
  let offset = HEADER_BYTES;
  const [logprobs, observation, completion, detail] = lengths.map((length) =>
    bytes.slice(offset, offset += length).buffer
  );
  return {
    logprobs: logprobBytes === 4 ? new Float32Array(logprobs!) : new Float64Array(logprobs!),
    observation: new Uint32Array(observation!),
    completion: new Uint32Array(completion!),
    detail: readDetail(detail!),
  };
}

function readDetail(bytes: ArrayBuffer): TurnDetail {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    throw damaged("its detail is no JSON text", cause);
  }
}

function damaged(what: string, cause?: unknown): VerbatimError {
  return new VerbatimError("internal", `A stored turn can't be read: ${what}.`, { cause });
}
