/** What a gateway adds to the time to first delta, beside what a bare relay adds, at a pace that leaves the machine idle. */

import type { BenchTargets } from "./bench_targets.ts";
import { type PacedAgents, type PacedSlice, runPaced, type StreamedPath } from "./paced_load.ts";
import { readUsage } from "./process_usage.ts";
import { conversationOf, type PromptSizes } from "./prompt_sizes.ts";
import { median, quantile } from "./statistics.ts";

/** How many agents, how long, how fast. */
export interface FirstDeltaPlan {
  /** Prompt lengths, a row each. */
  readonly promptTokens: readonly number[];
  readonly sessions: number;
  /** How long turns arrive in a slice. */
  readonly sliceMs: number;
  /** Turns of a task after its first. */
  readonly turnsPerTask: number;
  /** Slices of each path in a row. */
  readonly rounds: number;
  /** Turns by which each path is warmed up and the pace is found. */
  readonly calibrationTurns: number;
  /** Share of all cores that engine, relay, gateway and load generator together are to use at most. */
  readonly mostCpuShare: number;
}

/** One path's figures. */
export interface FirstDeltaFigures {
  /** Median over its slices. */
  readonly p50Ms: number;
  /** Of the turns of all slices: a slice has too few. */
  readonly p99Ms: number;
  /** Of first turns of tasks. */
  readonly newTaskP50Ms: number;
  /** To the end of the stream. */
  readonly wholeP50Ms: number;
}

/** What a path adds to the engine's figures. */
export interface AddedFigures {
  /** To the engine's of the same round, median over the rounds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly newTaskP50Ms: number;
}

/** A row of the table. */
export interface FirstDeltaRow {
  readonly promptTokens: number;
  readonly turnsPerS: number;
  readonly turnsPerSlice: number;
  /** Share of all cores in the gateway's slices, the dearest ones: their median and the highest; null where the system does not tell. */
  readonly cpuShare: { readonly median: number; readonly highest: number } | null;
  readonly engine: FirstDeltaFigures;
  readonly added: { readonly relay: AddedFigures; readonly gateway: AddedFigures };
  /** The gateway's turns until their end, which shows that first deltas do not wait for it. */
  readonly gateway: FirstDeltaFigures;
  readonly relay: FirstDeltaFigures;
  readonly turns: number;
  readonly late: number;
  readonly failures: readonly string[];
}

/** The pace of the calibration, and of a system that does not tell CPU time. */
const SLOW_TURNS_PER_S = 40;
/** An agent has at least this long for a turn, streamed pauses included. */
const LEAST_PERIOD_MS = 160;
/** Part of the share that the pace aims at: slices differ. */
const AIM = 0.85;

/** A slice and what all processes used meanwhile. */
interface MeasuredSlice extends PacedSlice {
  readonly cpuMs: number | null;
}

/** Measures one prompt length: the three paths in slices by turns, the same arrivals for each of a round. */
export async function measureFirstDelta(
  targets: BenchTargets,
  promptTokens: number,
  options: { readonly plan: FirstDeltaPlan; readonly sizes: PromptSizes; readonly signal: AbortSignal },
): Promise<FirstDeltaRow> {
  const { plan, signal } = options;
  const paths = pathsOf(targets);
  const cpuMs = () => totalCpuMs(targets);
  const agentsFor = (turns: readonly number[], seed: number) =>
    Promise.all(paths.map((path) => openAgents(path, turns, { ...options, promptTokens, seed })));

  async function slice(of: PacedAgents, pace: { turns: number; turnsPerS: number; seed: number }) {
    const before = cpuMs();
    const run = await runPaced(of, { ...pace, signal });
    const after = cpuMs();
    return { ...run, cpuMs: before === null || after === null ? null : after - before };
  }

  const calibration: MeasuredSlice[] = [];
  for (const path of await agentsFor([plan.calibrationTurns], 3_000_000)) {
    calibration.push(await slice(path, { turns: plan.calibrationTurns, turnsPerS: SLOW_TURNS_PER_S, seed: 0 }));
  }
  const turnsPerS = paceOf(calibration, plan);
  // However slow the pace is: most agents have a turn that is not the first of its task.
  const turnsPerSlice = Math.max(2 * plan.sessions, Math.ceil(turnsPerS * plan.sliceMs / 1000));
  const agents = await agentsFor(new Array(plan.rounds).fill(turnsPerSlice), 4_000_000);
  const rounds: MeasuredSlice[][] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const slices: MeasuredSlice[] = [];
    const order = [...agents.keys()];
    for (const index of round % 2 === 0 ? order : order.toReversed()) {
      slices[index] = await slice(agents[index]!, { turns: turnsPerSlice, turnsPerS, seed: 1 + round });
    }
    rounds.push(slices);
  }
  const [engine, relay, gateway] = agents.map((_, index) => rounds.map((slices) => slices[index]!));
  const all = [...calibration, ...rounds.flat()];
  return {
    promptTokens,
    turnsPerS,
    turnsPerSlice,
    cpuShare: cpuShareOf(gateway!),
    engine: figuresOf(engine!),
    relay: figuresOf(relay!),
    gateway: figuresOf(gateway!),
    added: { relay: addedTo(engine!, relay!), gateway: addedTo(engine!, gateway!) },
    turns: all.reduce((sum, { firstDeltaMs, newTaskMs }) => sum + firstDeltaMs.length + newTaskMs.length, 0),
    late: rounds.flat().reduce((sum, { late }) => sum + late, 0),
    failures: [calibration, ...rounds].flatMap((slices) =>
      slices.flatMap(({ failures }, index) => failures.map((why) => `${agents[index]!.path.name}: ${why}`))
    ),
  };
}

function pathsOf({ engine, relay, gateway }: BenchTargets): StreamedPath[] {
  const anyKey = () => Promise.resolve("any");
  return [
    { name: "engine", url: `${engine.url}/generate`, wire: "engine", openTask: anyKey },
    { name: "relay", url: `${relay.process.url}/v1/chat/completions`, wire: "engine", openTask: relay.openTask },
    { name: "gateway", url: `${gateway.process.url}/v1/chat/completions`, wire: "chat", openTask: gateway.openTask },
  ];
}

/**
 * Agents with all the conversations they need for slices of so many turns. Their first tasks are of different lengths, so
 * that not all begin a task at once.
 */
async function openAgents(
  path: StreamedPath,
  slices: readonly number[],
  { plan, sizes, promptTokens, seed }: {
    readonly plan: FirstDeltaPlan;
    readonly sizes: PromptSizes;
    readonly promptTokens: number;
    readonly seed: number;
  },
): Promise<PacedAgents> {
  const requestsPerTask = 1 + plan.turnsPerTask;
  // The rotation gives each agent its part of every slice, rounded up.
  const requests = slices.reduce((sum, turns) => sum + Math.ceil(turns / plan.sessions), 0);
  const tasks: PacedAgents["tasks"][number][] = [];
  for (let agent = 0; agent < plan.sessions; agent++) {
    const queue: PacedAgents["tasks"][number] = [];
    for (let task = 0, needed = requests; needed > 0; task++) {
      const left = task === 0 ? 1 + agent % requestsPerTask : requestsPerTask;
      const text = { promptTokens, turns: plan.turnsPerTask, seed: seed + promptTokens + 1000 * agent + task };
      queue.push({ session: { key: await path.openTask(), conversation: conversationOf(sizes, text) }, left });
      needed -= left;
    }
    tasks.push(queue);
  }
  return { path, tasks };
}

/** CPU time that everything took part in used so far; null where the system does not tell. */
function totalCpuMs({ engine, relay, gateway }: BenchTargets): number | null {
  const used = [engine, relay.process, gateway.process].map((process) => process.usage());
  let sum = 0;
  for (const usage of [...used, readUsage(Deno.pid)]) {
    if (usage === null) return null;
    sum += usage.cpuMs;
  }
  return sum;
}

/** The pace at which the dearest path uses as much CPU as it may. */
function paceOf(calibration: readonly MeasuredSlice[], plan: FirstDeltaPlan): number {
  const perTurn = calibration.map(({ cpuMs }) => (cpuMs ?? NaN) / plan.calibrationTurns);
  const dearest = Math.max(...perTurn);
  if (Number.isNaN(dearest) || dearest === 0) return SLOW_TURNS_PER_S;
  const inShare = AIM * plan.mostCpuShare * navigator.hardwareConcurrency * 1000 / dearest;
  return Math.min(inShare, plan.sessions * 1000 / LEAST_PERIOD_MS);
}

function cpuShareOf(slices: readonly MeasuredSlice[]): FirstDeltaRow["cpuShare"] {
  const shares: number[] = [];
  for (const { cpuMs, elapsedMs } of slices) {
    if (cpuMs === null) return null;
    shares.push(cpuMs / elapsedMs / navigator.hardwareConcurrency);
  }
  return { median: median(shares), highest: Math.max(...shares) };
}

function figuresOf(slices: readonly PacedSlice[]): FirstDeltaFigures {
  return {
    p50Ms: median(slices.map(({ firstDeltaMs }) => quantile(firstDeltaMs, 0.5))),
    p99Ms: p99(slices),
    newTaskP50Ms: newTaskP50(slices),
    wholeP50Ms: median(slices.map(({ wholeMs }) => quantile(wholeMs, 0.5))),
  };
}

function addedTo(engine: readonly PacedSlice[], path: readonly PacedSlice[]): AddedFigures {
  const p50Ms = ({ firstDeltaMs }: PacedSlice) => quantile(firstDeltaMs, 0.5);
  return {
    p50Ms: median(path.map((slice, round) => p50Ms(slice) - p50Ms(engine[round]!))),
    p99Ms: p99(path) - p99(engine),
    newTaskP50Ms: newTaskP50(path) - newTaskP50(engine),
  };
}

function p99(slices: readonly PacedSlice[]): number {
  return quantile(slices.flatMap(({ firstDeltaMs }) => firstDeltaMs), 0.99);
}

/** A slice has few first turns, so they are taken together. */
function newTaskP50(slices: readonly PacedSlice[]): number {
  return quantile(slices.flatMap(({ newTaskMs }) => newTaskMs), 0.5);
}
