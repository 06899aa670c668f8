/** Whether a turn of a long task costs what a turn of a short one does, at one length of the prompt in tokens and bytes. */

import type { BenchTarget, BenchTargets } from "./bench_targets.ts";
import { equalConversations } from "./equal_prompts.ts";
import { type BenchSession, runTurns, type Slice } from "./load_generator.ts";
import type { PromptSizes } from "./prompt_sizes.ts";
import { median } from "./statistics.ts";

/** How long the long task is, and how often it is measured. */
export interface LongTaskPlan {
  /** Turns of the long task; the short one has ten. */
  readonly turns: number;
  /** Tokens of the prompts that are measured. */
  readonly promptTokens: number;
  readonly rounds: number;
}

/** Something of the short task and of the long one. */
export interface BothLengths<T> {
  readonly tenth: T;
  readonly last: T;
}

/** One target's figures, each the median over all measured turns. */
export interface LongTaskFigures {
  /** A turn around the tenth. */
  readonly tenthMs: number;
  /** A turn around the last of the long task. */
  readonly lastMs: number;
  /** The latter over the former. */
  readonly ratio: number;
  /** Bytes of the requests, by which they are to be compared. */
  readonly requestBytes: BothLengths<number>;
}

/** What was seen. */
export interface LongTaskResults {
  readonly gateway: LongTaskFigures;
  /** What any handler pays that parses a request of so many messages. */
  readonly relay: LongTaskFigures;
  /** Tokens of the prompts as the gateway counted them, by which they are to be compared. */
  readonly promptTokens: BothLengths<number>;
  readonly failures: readonly string[];
}

const SHORT_TURNS = 10;
/** Turns that are measured, half of them before the one that is meant. */
const MEASURED = 10;

/** A task on its way, and its measured turns. */
interface MeasuredTask {
  readonly target: BenchTarget;
  readonly length: "tenth" | "last";
  readonly pool: readonly BenchSession[];
  readonly slices: Slice[];
}

/**
 * Measures gateway and relay, in each round with new tasks. All are brought to their turn first; then short and long task
 * take one turn after the other, so that what else the machine does falls on both.
 */
export async function measureLongTask(
  { gateway, relay }: Pick<BenchTargets, "gateway" | "relay">,
  options: { readonly plan: LongTaskPlan; readonly sizes: PromptSizes; readonly signal: AbortSignal },
): Promise<LongTaskResults> {
  const { plan, sizes, signal } = options;
  const measured: MeasuredTask[] = [];
  const failures: string[] = [];
  const turnOf = { tenth: SHORT_TURNS, last: plan.turns - MEASURED / 2 };

  async function run({ target, pool }: Pick<MeasuredTask, "target" | "pool">, turns: number): Promise<Slice> {
    const slice = await runTurns(target, pool, { turns, sessions: 1, requestsPerTask: Infinity, signal });
    failures.push(...slice.failures.map((why) => `${target.name}: ${why}`));
    return slice;
  }

  for (let round = 0; round < plan.rounds; round++) {
    const seed = 2_000_000 + 2 * round;
    const { few, many } = await equalConversations(gateway.process.url, sizes, {
      promptTokens: plan.promptTokens,
      few: { turns: turnOf.tenth, seed },
      many: { turns: turnOf.last, seed: seed + 1 },
    });
    const tasks: MeasuredTask[] = [];
    for (const target of [relay, gateway]) {
      for (const [length, conversation] of [["tenth", few], ["last", many]] as const) {
        const pool = [{ key: await target.openTask(), conversation: conversation.copy() }];
        await run({ target, pool }, turnOf[length] - MEASURED / 2);
        tasks.push({ target, length, pool, slices: [] });
      }
    }
    for (let turn = 0; turn < MEASURED; turn++) {
      // None always has the garbage of the same one to collect.
      for (const task of turn % 2 === 0 ? tasks : tasks.toReversed()) task.slices.push(await run(task, 1));
    }
    measured.push(...tasks);
  }
  const slicesOf = (target: BenchTarget, length: MeasuredTask["length"]) =>
    measured.filter((task) => task.target === target && task.length === length).flatMap(({ slices }) => slices);
  const both = (target: BenchTarget) => ({ tenth: slicesOf(target, "tenth"), last: slicesOf(target, "last") });
  return {
    gateway: figuresOf(both(gateway)),
    relay: figuresOf(both(relay)),
    promptTokens: middles(both(gateway), ({ promptTokens }) => promptTokens),
    failures,
  };
}

function figuresOf(slices: BothLengths<readonly Slice[]>): LongTaskFigures {
  const { tenth: tenthMs, last: lastMs } = middles(slices, ({ turnMs }) => turnMs);
  return {
    tenthMs,
    lastMs,
    ratio: lastMs / tenthMs,
    requestBytes: middles(slices, ({ requestBytes }) => requestBytes),
  };
}

function middles(
  { tenth, last }: BothLengths<readonly Slice[]>,
  values: (slice: Slice) => readonly number[],
): BothLengths<number> {
  return { tenth: median(tenth.flatMap(values)), last: median(last.flatMap(values)) };
}
