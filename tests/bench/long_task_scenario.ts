/** Whether a turn of a long task costs what a turn of a short one does, at one length of the prompt. */

import type { BenchTarget } from "./bench_targets.ts";
import { runTurns, type Slice } from "./load_generator.ts";
import { conversationOf, type PromptSizes } from "./prompt_sizes.ts";
import { median } from "./statistics.ts";

/** How long the long task is, and how often it is measured. */
export interface LongTaskPlan {
  /** Turns of the long task; the short one has ten. */
  readonly turns: number;
  /** Tokens of the prompts that are measured. */
  readonly promptTokens: number;
  readonly rounds: number;
}

/** Medians over the rounds. */
export interface LongTaskFigures {
  /** A turn around the tenth. */
  readonly tenthMs: number;
  /** A turn around the last of the long task. */
  readonly lastMs: number;
  /** The latter over the former, of each round. */
  readonly ratio: number;
  /** Tokens of the prompts, by which they are to be compared. */
  readonly promptTokens: { readonly tenth: number; readonly last: number };
  readonly failures: readonly string[];
}

const SHORT_TURNS = 10;
/** Turns that are measured, half of them before the one that is meant. */
const MEASURED = 10;

/** Measures both by turns, each time in a new task. */
export async function measureLongTask(
  target: BenchTarget,
  options: { readonly plan: LongTaskPlan; readonly sizes: PromptSizes; readonly signal: AbortSignal },
): Promise<LongTaskFigures> {
  const { plan, sizes, signal } = options;
  const rounds: { readonly tenth: Slice; readonly last: Slice }[] = [];
  const failures: string[] = [];

  async function around(turn: number, seed: number): Promise<Slice> {
    const before = turn - MEASURED / 2;
    // What the turns before add is taken from the first prompt, so that the measured ones are equally long.
    const promptTokens = plan.promptTokens - sizes.turnTokens * turn;
    const conversation = conversationOf(sizes, { promptTokens, turns: 0, seed });
    const pool = [{ key: await target.openTask(), conversation }];
    const load = { sessions: 1, requestsPerTask: Infinity, signal };
    const first = await runTurns(target, pool, { ...load, turns: before });
    const measured = await runTurns(target, pool, { ...load, turns: MEASURED });
    failures.push(...first.failures, ...measured.failures);
    return measured;
  }

  for (let round = 0; round < plan.rounds; round++) {
    const seed = 2_000_000 + 2 * round;
    const tenth = await around(SHORT_TURNS, seed);
    const last = await around(plan.turns - MEASURED / 2, seed + 1);
    rounds.push({ tenth, last });
  }
  const over = (figure: (round: { tenth: Slice; last: Slice }) => number) => median(rounds.map(figure));
  return {
    tenthMs: over(({ tenth }) => median(tenth.turnMs)),
    lastMs: over(({ last }) => median(last.turnMs)),
    ratio: over(({ tenth, last }) => median(last.turnMs) / median(tenth.turnMs)),
    promptTokens: {
      tenth: over(({ tenth }) => median(tenth.promptTokens)),
      last: over(({ last }) => median(last.promptTokens)),
    },
    failures,
  };
}
