/** The results as Markdown. */

import type { ColdStart } from "./cold_start_scenario.ts";
import type { FirstDeltaRow } from "./first_delta_scenario.ts";
import type { BothLengths, LongTaskResults } from "./long_task_scenario.ts";
import type { OverheadRow } from "./overhead_scenario.ts";
import type { BenchResults } from "./run_bench.ts";
import type { ScanResults } from "./scan_scenario.ts";
import { median } from "./statistics.ts";

/** Where and with what it was measured. */
export interface BenchMachine {
  readonly cpu: string;
  readonly cores: number;
  readonly system: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** The tables of what was measured, headed by machine and versions. */
export function reportOf(results: BenchResults, machine: BenchMachine): string {
  const { rows, firstDelta, longTask, scan } = results;
  const turns = [...rows, ...firstDelta].reduce((sum, row) => sum + row.turns, 0);
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  return [
    `${machine.cores} cores (${machine.cpu}), ${machine.system}; ${versions}. ` +
    `Load average before: ${
      results.loadBefore.toFixed(1)
    }. ${turns} turns, ${results.failures.length} failed requests, ` +
    `${(results.elapsedMs / 1000).toFixed(0)} s in all.`,
    ...rows.length === 0 ? [] : turnTables(rows),
    ...skippedRows(results),
    ...firstDelta.length === 0 ? [] : firstDeltaTable(firstDelta, results),
    ...longTask === null ? [] : longTaskTable(longTask, results),
    ...restTable(results),
    ...scan === null ? [] : scanTable(scan),
  ].join("\n\n") + "\n";
}

function turnTables(rows: readonly OverheadRow[]): string[] {
  return [
    "**Turns** (the ratio is the gateway's turns a second over the bare relay's)",
    overheadTable(rows),
    "**CPU, first turns, memory**",
    cpuTable(rows),
  ];
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

function firstDeltaTable(rows: readonly FirstDeltaRow[], { plan: { firstDelta: plan } }: BenchResults): string[] {
  const late = rows.reduce((sum, row) => sum + row.late, 0);
  return [
    `**Time to first delta** (${plan.sessions} sessions, streamed and paced; added to what the engine takes when it is ` +
    `asked directly)`,
    table(
      [
        "prompt tokens",
        "gateway adds, p50 ms",
        "p99 ms",
        "relay adds, p50 ms",
        "p99 ms",
        "engine p50 ms",
        "p99 ms",
        "gateway adds to a task's first turn, p50 ms",
        "relay",
        "turns/s",
        "CPU share, %",
      ],
      rows.map(({ promptTokens, engine, added, turnsPerS, cpuShare }) => [
        sizeName(promptTokens),
        `**${figure(added.gateway.p50Ms)}**`,
        figure(added.gateway.p99Ms),
        figure(added.relay.p50Ms),
        figure(added.relay.p99Ms),
        figure(engine.p50Ms),
        figure(engine.p99Ms),
        figure(added.gateway.newTaskP50Ms),
        figure(added.relay.newTaskP50Ms),
        turnsPerS.toFixed(0),
        cpuShare === null ? "unknown" : `${percent(cpuShare.median)} (at most ${percent(cpuShare.highest)})`,
      ]),
    ),
    table(
      ["prompt tokens", "engine, whole stream p50 ms", "relay", "gateway"],
      rows.map(({ promptTokens, engine, relay, gateway }) => [
        sizeName(promptTokens),
        ...[engine, relay, gateway].map(({ wholeP50Ms }) => figure(wholeP50Ms)),
      ]),
    ),
    ...late === 0 ? [] : [`${late} turns arrived while their agent was still at its last one.`],
  ];
}

function longTaskTable(
  { gateway, relay, promptTokens }: LongTaskResults,
  { plan: { longTask: plan } }: BenchResults,
): string[] {
  return [
    `**A long task** (requests of ${
      sizeName(plan.promptTokens)
    } tokens and equal bytes; the relay's ratio is what any ` +
    `handler pays that parses so many messages)`,
    table(["", "around turn 10", `around turn ${plan.turns}`, "ratio"], [
      ["gateway, a turn, ms", figure(gateway.tenthMs), figure(gateway.lastMs), `**${gateway.ratio.toFixed(2)}**`],
      ["relay, a turn, ms", figure(relay.tenthMs), figure(relay.lastMs), relay.ratio.toFixed(2)],
      ["prompt tokens", String(promptTokens.tenth), String(promptTokens.last), ratioOf(promptTokens)],
      [
        "request bytes (gateway)",
        String(gateway.requestBytes.tenth),
        String(gateway.requestBytes.last),
        ratioOf(gateway.requestBytes),
      ],
      [
        "request bytes (relay)",
        String(relay.requestBytes.tenth),
        String(relay.requestBytes.last),
        ratioOf(relay.requestBytes),
      ],
    ]),
  ];
}

function scanTable({ positions, topK, replyBytes, resultBytes, scan, parse }: ScanResults): string[] {
  return [
    `**A teacher's reply** of ${positions} positions and ${topK} top logprobs each ` +
    `(${megabytes(replyBytes)} MB of JSON, ${megabytes(resultBytes)} MB of arrays)`,
    table(["", "scanner", "JSON.parse"], [
      ["from the file's bytes to the result, ms", figure(scan.elapsedMs), figure(parse.elapsedMs)],
      [
        "peak memory over the result arrays, MB",
        megabytes(scan.peakOverResultBytes),
        megabytes(parse.peakOverResultBytes),
      ],
    ]),
  ];
}

function restTable(results: BenchResults): string[] {
  const { coldStarts, rows } = results;
  const memory: string[][] = rows.length === 0
    ? []
    : [["memory after the runs (RSS), MB", megabytes(results.rssAfterRunsBytes), ""]];
  const lines = [...stallRows(results), ...coldStarts.length === 0 ? [] : coldStartRows(coldStarts), ...memory];
  return lines.length === 0 ? [] : ["**Event loop, cold start, memory**", table(["what", "gateway", "relay"], lines)];
}

function stallRows({ plan, stall }: BenchResults): string[][] {
  if (stall === null) return [];
  const { gateway, relay } = stall;
  const prompts = `${plan.stall.prompts} first prompts of ${sizeName(plan.stall.promptTokens)} at once`;
  return [
    [`longest wait for /healthz, ${prompts}, ms`, figure(gateway.longestMs), figure(relay.longestMs)],
    ["longest pause of the watcher itself, ms", figure(gateway.ownLongestMs), figure(relay.ownLongestMs)],
    ["until all of them were answered, ms", figure(gateway.servedMs), figure(relay.servedMs)],
  ];
}

function coldStartRows(starts: readonly ColdStart[]): string[][] {
  const memory = starts.map((start) => start.rssBytes).filter((bytes) => bytes !== null);
  return [
    ["process start to first 200 of /healthz, ms", figure(median(starts.map((start) => start.healthyMs))), ""],
    ["process start to first answered turn, ms", figure(median(starts.map((start) => start.firstTurnMs))), ""],
    ["memory after start (RSS), MB", megabytes(memory.length === 0 ? null : median(memory)), ""],
  ];
}

/** A Markdown table. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const numbers = head.map((_, column) => column === 0 ? "---" : "---:");
  return [head, numbers, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function sizeName(tokens: number): string {
  return tokens % 1024 === 0 ? `${tokens / 1024}k` : String(tokens);
}

function percent(share: number): string {
  return (100 * share).toFixed(0);
}

function ratioOf({ tenth, last }: BothLengths<number>): string {
  return (last / tenth).toFixed(3);
}

function megabytes(bytes: number | null): string {
  return bytes === null ? figure(null) : (bytes / 2 ** 20).toFixed(0);
}

/** Three digits that count. */
function figure(value: number | null): string {
  if (value === null || Number.isNaN(value)) return "unknown";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
