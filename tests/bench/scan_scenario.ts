/** How fast a teacher's reply becomes arrays, and what memory that takes, beside JSON.parse of the same bytes. */

import type { ScanFigures } from "./scan_child.ts";
import { writeScanReply } from "./scan_reply.ts";
import { median } from "./statistics.ts";

/** What was seen. */
export interface ScanResults {
  readonly positions: number;
  readonly topK: number;
  readonly replyBytes: number;
  readonly resultBytes: number;
  readonly scan: ScanMedians;
  readonly parse: ScanMedians;
}

/** Medians over the rounds. */
export interface ScanMedians {
  readonly elapsedMs: number;
  /** The peak over the result arrays; null where the system does not tell. */
  readonly peakOverResultBytes: number | null;
}

/** Reads the reply both ways by turns, each time in a new process. */
export async function measureScan(
  shape: { readonly positions: number; readonly topK: number; readonly rounds: number },
  options: { readonly folder: string; readonly signal: AbortSignal },
): Promise<ScanResults> {
  const path = `${options.folder}/reply.json`;
  const replyBytes = await writeScanReply(path, shape);
  const runs: { scan: ScanFigures[]; parse: ScanFigures[] } = { scan: [], parse: [] };
  for (let round = 0; round < shape.rounds; round++) {
    for (const how of ["scan", "parse"] as const) {
      runs[how].push(await readOnce([how, path, String(shape.positions), String(shape.topK)], options.signal));
    }
  }
  await Deno.remove(path);
  return {
    positions: shape.positions,
    topK: shape.topK,
    replyBytes,
    resultBytes: runs.scan[0]?.resultBytes ?? 0,
    scan: mediansOf(runs.scan),
    parse: mediansOf(runs.parse),
  };
}

function mediansOf(runs: readonly ScanFigures[]): ScanMedians {
  const peaks = runs.flatMap(({ peakBytes, resultBytes }) => peakBytes === null ? [] : [peakBytes - resultBytes]);
  return {
    elapsedMs: median(runs.map(({ elapsedMs }) => elapsedMs)),
    peakOverResultBytes: peaks.length === 0 ? null : median(peaks),
  };
}

async function readOnce(args: readonly string[], signal: AbortSignal): Promise<ScanFigures> {
  const module = new URL("./scan_child.ts", import.meta.url).href;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--frozen", "--allow-all", module, ...args],
    stdin: "null",
    signal,
  }).output();
  if (!success) throw new Error(`The reading failed: ${new TextDecoder().decode(stderr).slice(-500)}`);
  return JSON.parse(new TextDecoder().decode(stdout));
}
