/** A teacher's reply of any length, as SGLang writes one: float32 logprobs as doubles, no spaces. */

import { seededRandom } from "../fixtures/seeded_random.ts";

/** Ids in the reply are below it. */
export const SCAN_VOCABULARY = 151_936;

/** The scored ids. */
export function scanResponse(positions: number): Uint32Array {
  const random = seededRandom(1);
  return Uint32Array.from({ length: positions }, () => random.integer(SCAN_VOCABULARY));
}

/** Writes the reply to these ids after a prompt of the one id 1. The number of bytes. */
export async function writeScanReply(path: string, shape: { positions: number; topK: number }): Promise<number> {
  using file = await Deno.open(path, { write: true, create: true, truncate: true });
  const writer = file.writable.getWriter();
  const encoder = new TextEncoder();
  let bytes = 0;
  async function write(text: string): Promise<void> {
    const piece = encoder.encode(text);
    bytes += piece.byteLength;
    await writer.write(piece);
  }
  const random = seededRandom(2);
  const logprob = (from: number) => Math.fround(from - random.unit());
  const ids = scanResponse(shape.positions);
  await write('{"text":" x","output_ids":[5],"meta_info":{"finish_reason":{"type":"length","length":1},');
  await write('"weight_version":"1","input_token_logprobs":[[null,1,null]');
  let piece = "";
  for (const id of ids) {
    piece += `,[${logprob(-40)},${id},null]`;
    if (piece.length < 1 << 16) continue;
    await write(piece);
    piece = "";
  }
  await write(`${piece}],"input_top_logprobs":[null`);
  piece = "";
  for (const id of ids) {
    let last = 0;
    const row: string[] = [];
    // Ids of one row differ from each other and from the token's own.
    const first = id + 1 + random.integer(1000);
    for (let k = 0; k < shape.topK; k++) {
      last = logprob(last);
      row.push(`[${last},${(first + k * 997) % SCAN_VOCABULARY},null]`);
    }
    piece += `,[${row.join(",")}]`;
    if (piece.length < 1 << 16) continue;
    await write(piece);
    piece = "";
  }
  await write(`${piece}],"output_token_logprobs":[[-1,5,null]]}}`);
  await writer.close();
  return bytes;
}
