/** Reads one scoring reply from a file, by the scanner or by JSON.parse, and prints what that took. A process of its own: its peak is of this work alone. */

import { ScoreScanner } from "../../shared/adapters/scan/scan_scores.ts";
import { SCAN_VOCABULARY, scanResponse } from "./scan_reply.ts";

/** What one reading took. */
export interface ScanFigures {
  readonly elapsedMs: number;
  /** Resident memory at its highest, over what it was before; null where the system does not tell. */
  readonly peakBytes: number | null;
  /** Bytes of the arrays that the work is about. */
  readonly resultBytes: number;
}

async function scan(path: string, shape: { positions: number; topK: number }): Promise<number> {
  const scanner = new ScoreScanner({
    prompt: Uint32Array.of(1),
    response: scanResponse(shape.positions),
    topK: shape.topK,
    tokenIds: new Uint32Array(0),
    mask: null,
    vocabSize: SCAN_VOCABULARY,
  });
  using file = await Deno.open(path);
  const piece = new Uint8Array(64 * 1024);
  for (let read = await file.read(piece); read !== null; read = await file.read(piece)) {
    scanner.push(piece.subarray(0, read));
  }
  const { logprobs, topkIndices, topkLogprobs } = scanner.finish();
  return logprobs.byteLength + topkIndices.byteLength + topkLogprobs.byteLength;
}

async function parse(path: string, shape: { positions: number; topK: number }): Promise<number> {
  const { meta_info: meta } = JSON.parse(await Deno.readTextFile(path));
  if (meta.input_top_logprobs.length !== shape.positions + 1) throw new Error("The reply is not whole");
  return shape.positions * (8 + 8 * shape.topK);
}

/** Bytes of a line of `/proc/self/status`. */
function statusBytes(name: string): number | null {
  if (Deno.build.os !== "linux") return null;
  const found = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(Deno.readTextFileSync("/proc/self/status"));
  return found === null ? null : Number(found[1]) * 1024;
}

if (import.meta.main) {
  const [how, path, positions, topK] = Deno.args;
  const shape = { positions: Number(positions), topK: Number(topK) };
  const before = statusBytes("VmRSS");
  const startedAt = performance.now();
  const resultBytes = await (how === "scan" ? scan : parse)(path!, shape);
  const elapsedMs = performance.now() - startedAt;
  const peak = statusBytes("VmHWM");
  const figures: ScanFigures = {
    elapsedMs,
    peakBytes: before === null || peak === null ? null : peak - before,
    resultBytes,
  };
  await Deno.stdout.write(new TextEncoder().encode(JSON.stringify(figures)));
}
