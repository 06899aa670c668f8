/** The results as Markdown. */

import type { BenchResults } from "./run_bench.ts";
import type { OverheadRow } from "./overhead_scenario.ts";
import { median } from "./statistics.ts";

/** Where and with what it was measured. */
export interface BenchMachine {
  readonly cpu: string;
  readonly cores: number;
  readonly system: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** The tables, headed by machine and versions. */
export function reportOf(results: BenchResults, machine: BenchMachine): string {
  const turns = results.rows.reduce((sum, row) => sum + row.turns, 0);
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  return [
    `${machine.cores} cores (${machine.cpu}), ${machine.system}; ${versions}. ` +
    `Load average before: ${
      results.loadBefore.toFixed(1)
    }. ${turns} turns, ${results.failures.length} failed requests, ` +
    `${(results.elapsedMs / 1000).toFixed(0)} s in all.`,
    `**Turns** (the ratio is the gateway's turns a second over the bare relay's)`,
    overheadTable(results.rows),
    ...skippedRows(results),
    `**CPU, first turns, memory**`,
    cpuTable(results.rows),
    `**A long task** (prompts of ${sizeName(results.plan.longTask.promptTokens)} tokens)`,
    longTaskTable(results),
    `**Event loop, cold start, memory**`,
    restTable(results),
    `**A teacher's reply** of ${results.scan.positions} positions and ${results.scan.topK} top logprobs each ` +
    `(${megabytes(results.scan.replyBytes)} MB of JSON, ${megabytes(results.scan.resultBytes)} MB of arrays)`,
    scanTable(results),
  ].join("\n\n") + "\n";
}

function skippedRows({ skipped }: BenchResults): string[] {
  if (skipped.length === 0) return [];
  const rows = skipped.map(({ sessions, promptTokens }) => `${sessions} sessions of ${sizeName(promptTokens)}`);
  return [`The machine was too busy; no time was left for ${rows.join(", ")}.`];
}

function overheadTable(rows: readonly OverheadRow[]): string {
  return table(
    [
      "sessions",
      "prompt tokens",
      "ratio",
      "gateway turns/s",
      "relay turns/s",
      "gateway p50 ms",
      "p99 ms",
      "relay p50 ms",
      "p99 ms",
    ],
    rows.map(({ cell, promptTokens, gateway, relay, ratio }) => [
      String(cell.sessions),
      `${sizeName(cell.promptTokens)} (${promptTokens})`,
      `**${ratio.toFixed(2)}**`,
      figure(gateway.turnsPerS),
      figure(relay.turnsPerS),
      figure(gateway.p50Ms),
      figure(gateway.p99Ms),
      figure(relay.p50Ms),
      figure(relay.p99Ms),
    ]),
  );
}

function cpuTable(rows: readonly OverheadRow[]): string {
  return table(
    [
      "sessions",
      "prompt tokens",
      "rounds",
      "gateway CPU ms a turn",
      "relay CPU ms a turn",
      "load generator, cores (gateway)",
      "(relay)",
      "gateway first turn p50 ms",
      "relay first turn p50 ms",
      "gateway memory after (RSS), MB",
    ],
    rows.map(({ cell, rounds, gateway, relay, rssBytes }) => [
      String(cell.sessions),
      sizeName(cell.promptTokens),
      String(rounds),
      figure(gateway.cpuMsPerTurn),
      figure(relay.cpuMsPerTurn),
      figure(gateway.loadCores),
      figure(relay.loadCores),
      figure(gateway.firstTurnMs),
      figure(relay.firstTurnMs),
      megabytes(rssBytes),
    ]),
  );
}

function longTaskTable({ plan, longTask: { tenthMs, lastMs, ratio, promptTokens } }: BenchResults): string {
  const { turns } = plan.longTask;
  return table(["", "around turn 10", `around turn ${turns}`, "ratio"], [
    ["a turn, ms", figure(tenthMs), figure(lastMs), `**${ratio.toFixed(2)}**`],
    ["prompt tokens", String(promptTokens.tenth), String(promptTokens.last), ""],
  ]);
}

function scanTable({ scan: { scan, parse } }: BenchResults): string {
  return table(["", "scanner", "JSON.parse"], [
    ["from the file's bytes to the result, ms", figure(scan.elapsedMs), figure(parse.elapsedMs)],
    [
      "peak memory over the result arrays, MB",
      megabytes(scan.peakOverResultBytes),
      megabytes(parse.peakOverResultBytes),
    ],
  ]);
}

function restTable({ plan, stall, coldStarts, rssAfterRunsBytes }: BenchResults): string {
  const prompts = `${plan.stall.prompts} first prompts of ${sizeName(plan.stall.promptTokens)} at once`;
  const memory = coldStarts.map((start) => start.rssBytes).filter((bytes) => bytes !== null);
  return table(["what", "gateway", "relay"], [
    [`longest wait for /healthz, ${prompts}, ms`, figure(stall.gateway.longestMs), figure(stall.relay.longestMs)],
    ["longest pause of the watcher itself, ms", figure(stall.gateway.ownLongestMs), figure(stall.relay.ownLongestMs)],
    ["until all of them were answered, ms", figure(stall.gateway.servedMs), figure(stall.relay.servedMs)],
    ["process start to first 200 of /healthz, ms", figure(median(coldStarts.map((start) => start.healthyMs))), ""],
    ["process start to first answered turn, ms", figure(median(coldStarts.map((start) => start.firstTurnMs))), ""],
    ["memory after start (RSS), MB", megabytes(memory.length === 0 ? null : median(memory)), ""],
    ["memory after the runs (RSS), MB", megabytes(rssAfterRunsBytes), ""],
  ]);
}

/** A Markdown table. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const numbers = head.map((_, column) => column === 0 ? "---" : "---:");
  return [head, numbers, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function sizeName(tokens: number): string {
  return tokens % 1024 === 0 ? `${tokens / 1024}k` : String(tokens);
}

function megabytes(bytes: number | null): string {
  return bytes === null ? figure(null) : (bytes / 2 ** 20).toFixed(0);
}

/** Three digits that count. */
function figure(value: number | null): string {
  if (value === null || Number.isNaN(value)) return "unknown";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
