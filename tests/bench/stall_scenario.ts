/** How long the event loop is away while long first prompts are encoded, seen from outside. */

import type { BenchPlan } from "./bench_plan.ts";
import type { BenchTarget } from "./bench_targets.ts";
import { runTurns } from "./load_generator.ts";
import { conversationOf, type PromptSizes } from "./prompt_sizes.ts";

/** What was seen of one target. */
export interface StallFigures {
  /** The longest wait for `GET /healthz` while the prompts were served. */
  readonly longestMs: number;
  /** The longest pause of the watching process itself, which is in the figure above at worst. */
  readonly ownLongestMs: number;
  readonly polls: number;
  /** Until all prompts were answered. */
  readonly servedMs: number;
  readonly failures: readonly string[];
}

const POLL_EVERY_MS = 2;

/** Sends all prompts at once and asks for `/healthz` one time after the other until they are answered. */
export async function measureStall(
  target: BenchTarget,
  options: { readonly plan: BenchPlan; readonly sizes: PromptSizes; readonly signal: AbortSignal },
): Promise<StallFigures> {
  const { signal, sizes } = options;
  const { prompts, promptTokens } = options.plan.stall;
  const pool = await Promise.all(
    Array.from({ length: prompts }, async (_, index) => ({
      key: await target.openTask(),
      conversation: conversationOf(sizes, { promptTokens, turns: 1, seed: 1_000_000 + index }),
    })),
  );
  let served = false;
  let longestMs = 0;
  let ownLongestMs = 0;
  let polls = 0;
  async function watch(): Promise<void> {
    while (!served) {
      const askedAt = performance.now();
      const response = await fetch(`${target.process.url}/healthz`, { signal });
      await response.body?.cancel();
      const answeredAt = performance.now();
      longestMs = Math.max(longestMs, answeredAt - askedAt);
      polls++;
      await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS));
      ownLongestMs = Math.max(ownLongestMs, performance.now() - answeredAt - POLL_EVERY_MS);
    }
  }
  const watching = watch();
  try {
    const slice = await runTurns(target, pool, { sessions: prompts, turns: prompts, requestsPerTask: 1, signal });
    served = true;
    await watching;
    const { failures } = slice;
    return { longestMs, ownLongestMs, polls, servedMs: slice.elapsedMs, failures };
  } finally {
    served = true;
  }
}
