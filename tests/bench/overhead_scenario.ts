/** What a turn costs at one place of the grid, gateway and relay by turns. */

import type { AgentConversation } from "./agent_conversation.ts";
import type { BenchPlan, OverheadCell } from "./bench_plan.ts";
import type { BenchTarget, BenchTargets } from "./bench_targets.ts";
import { type BenchSession, runTurns, type Slice } from "./load_generator.ts";
import { conversationOf, type PromptSizes } from "./prompt_sizes.ts";
import { median, quantile } from "./statistics.ts";

/** One target's figures, each the median over its slices. */
export interface TargetFigures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly turnsPerS: number;
  /** CPU time of the target a turn; null where the system does not tell. */
  readonly cpuMsPerTurn: number | null;
  /** Cores the load generator kept busy meanwhile. */
  readonly loadCores: number | null;
  /** Time of a task's first turn, whose prompt is new. */
  readonly firstTurnMs: number;
}

/** A row of the table. */
export interface OverheadRow {
  readonly cell: OverheadCell;
  /** Tokens of the prompts as the gateway counted them, median. */
  readonly promptTokens: number;
  readonly gateway: TargetFigures;
  readonly relay: TargetFigures;
  /** The gateway's turns a second over the relay's, median over the rounds. */
  readonly ratio: number;
  readonly turns: number;
  readonly rounds: number;
  /** The gateway's resident memory afterwards; null where the system does not tell. */
  readonly rssBytes: number | null;
  readonly failures: readonly string[];
}

/** More conversations than turns need, since agents do not progress evenly. */
const SPARE = 1.25;

/** Measures one place of the grid. */
export async function measureOverhead(
  targets: BenchTargets,
  cell: OverheadCell,
  options: { readonly plan: BenchPlan; readonly sizes: PromptSizes; readonly signal: AbortSignal },
): Promise<OverheadRow> {
  const { plan, signal } = options;
  const needed = Math.ceil(plan.rounds * cell.turnsPerSlice / cell.turnsPerTask * (cell.sessions > 1 ? SPARE : 1));
  const conversations = Math.max(cell.sessions, needed);
  const begun = Array.from(
    { length: conversations },
    (_, seed) =>
      conversationOf(options.sizes, { ...cell, turns: cell.turnsPerTask, seed: seed + cell.sessions * 1000 }),
  );
  const runs = await Promise.all(
    [targets.relay, targets.gateway].map(async (target) => ({
      target,
      pool: await openSessions(target, begun),
      first: [] as Slice[],
      slices: [] as Slice[],
    })),
  );
  const load = { sessions: cell.sessions, signal };
  const slice = { ...load, turns: cell.turnsPerSlice, mostMs: plan.sliceMs, requestsPerTask: 1 + cell.turnsPerTask };
  for (const run of runs) {
    run.first.push(await runTurns(run.target, run.pool, { ...load, turns: conversations, requestsPerTask: 1 }));
  }
  const startedAt = performance.now();
  for (let round = 0; round < plan.rounds; round++) {
    if (round > 0 && performance.now() - startedAt > plan.cellMs) break;
    for (const run of round % 2 === 0 ? runs : runs.toReversed()) {
      run.slices.push(await runTurns(run.target, run.pool, slice));
    }
  }
  const [relay, gateway] = runs;
  const all = runs.flatMap((run) => [...run.first, ...run.slices]);
  return {
    cell,
    promptTokens: median(gateway!.slices.flatMap((slice) => slice.promptTokens)),
    gateway: figuresOf(gateway!.first, gateway!.slices),
    relay: figuresOf(relay!.first, relay!.slices),
    ratio: median(gateway!.slices.map((slice, round) => turnsPerS(slice) / turnsPerS(relay!.slices[round]!))),
    rounds: gateway!.slices.length,
    rssBytes: targets.gateway.process.usage()?.rssBytes ?? null,
    turns: all.reduce((sum, slice) => sum + slice.turnMs.length, 0),
    failures: runs.flatMap((run) =>
      [...run.first, ...run.slices].flatMap((slice) => slice.failures.map((why) => `${run.target.name}: ${why}`))
    ),
  };
}

/** A task for each of these conversations. */
async function openSessions(target: BenchTarget, begun: readonly AgentConversation[]): Promise<BenchSession[]> {
  const sessions: BenchSession[] = [];
  for (const conversation of begun) sessions.push({ key: await target.openTask(), conversation: conversation.copy() });
  return sessions;
}

function figuresOf(first: readonly Slice[], slices: readonly Slice[]): TargetFigures {
  const over = (figure: (slice: Slice) => number | null): number | null => {
    const values = slices.map(figure).filter((value) => value !== null);
    return values.length === 0 ? null : median(values);
  };
  return {
    p50Ms: median(slices.map((slice) => quantile(slice.turnMs, 0.5))),
    p99Ms: median(slices.map((slice) => quantile(slice.turnMs, 0.99))),
    turnsPerS: median(slices.map(turnsPerS)),
    cpuMsPerTurn: over((slice) => slice.targetCpuMs === null ? null : slice.targetCpuMs / slice.turnMs.length),
    loadCores: over((slice) => slice.ownCpuMs === null ? null : slice.ownCpuMs / slice.elapsedMs),
    firstTurnMs: quantile(first.flatMap((slice) => slice.turnMs), 0.5),
  };
}

function turnsPerS(slice: Slice): number {
  return slice.turnMs.length / slice.elapsedMs * 1000;
}
