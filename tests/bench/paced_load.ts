/** Agents whose turns arrive by a clock and not when the last one is answered. It measures streams up to their first delta. */

import { seededRandom } from "../fixtures/seeded_random.ts";
import type { BenchSession } from "./load_generator.ts";
import { streamedTurn, type StreamWire } from "./streamed_turn.ts";

/** An endpoint that streams, and its conversations. */
export interface StreamedPath {
  readonly name: "engine" | "relay" | "gateway";
  readonly url: string;
  readonly wire: StreamWire;
  readonly openTask: () => Promise<string>;
}

/** The agents of one path; each keeps its conversation from slice to slice. */
export interface PacedAgents {
  readonly path: StreamedPath;
  /** The conversations each agent has left, the present one first, with the requests it may still make in it. */
  readonly tasks: readonly { readonly session: BenchSession; left: number }[][];
}

/** What one slice of paced load came to. */
export interface PacedSlice {
  /** Time to first delta of turns after the first of their task. */
  readonly firstDeltaMs: readonly number[];
  /** The same of first turns, whose prompts are new. */
  readonly newTaskMs: readonly number[];
  /** Time to the end of the stream, of the same turns as `firstDeltaMs`. */
  readonly wholeMs: readonly number[];
  /** Turns whose agent was still at its last one when they arrived; they are sent right after it. */
  readonly late: number;
  readonly elapsedMs: number;
  readonly failures: readonly string[];
}

/** How much load, and how fast. */
export interface Pace {
  readonly turns: number;
  readonly turnsPerS: number;
  /** The same seed gives the same arrivals. */
  readonly seed: number;
  readonly signal: AbortSignal;
}

const SLICE_TIMEOUT_MS = 60_000;

/** When turns arrive, in milliseconds from the start: one in each interval of the pace, anywhere in it. */
export function arrivals({ turns, turnsPerS, seed }: Omit<Pace, "signal">): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: turns }, (_, turn) => (turn + random.unit()) / turnsPerS * 1000);
}

/** Runs turns as they arrive, one agent after the other in rotation. */
export async function runPaced({ path, tasks }: PacedAgents, pace: Pace): Promise<PacedSlice> {
  const signal = AbortSignal.any([pace.signal, AbortSignal.timeout(SLICE_TIMEOUT_MS)]);
  const slice = { firstDeltaMs: [] as number[], newTaskMs: [] as number[], wholeMs: [] as number[] };
  const failures: string[] = [];
  let late = 0;

  async function turn(agent: PacedAgents["tasks"][number]): Promise<void> {
    const task = agent[0];
    if (task === undefined) return void failures.push("An agent has no conversation left");
    if (--task.left === 0) agent.shift();
    const { conversation, key } = task.session;
    const isNew = conversation.requests === 0;
    try {
      const body = conversation.request("streamed");
      const { firstDeltaMs, wholeMs, message } = await streamedTurn(path.url, { key, body, wire: path.wire }, signal);
      conversation.take(message);
      if (isNew) return void slice.newTaskMs.push(firstDeltaMs);
      slice.firstDeltaMs.push(firstDeltaMs);
      slice.wholeMs.push(wholeMs);
    } catch (cause) {
      pace.signal.throwIfAborted();
      failures.push(cause instanceof Error ? cause.message : String(cause));
    }
  }

  const agents = tasks.map((queue) => ({ queue, busy: false, last: Promise.resolve() }));
  const startedAt = performance.now();
  for (const [index, arrivesMs] of arrivals(pace).entries()) {
    const waitMs = arrivesMs - (performance.now() - startedAt);
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (signal.aborted) break;
    const agent = agents[index % agents.length]!;
    if (agent.busy) late++;
    agent.busy = true;
    const mine = agent.last.then(() => turn(agent.queue)).finally(() => {
      if (agent.last === mine) agent.busy = false;
    });
    agent.last = mine;
  }
  await Promise.all(agents.map(({ last }) => last));
  pace.signal.throwIfAborted();
  return { ...slice, late, elapsedMs: performance.now() - startedAt, failures };
}
