/** Draws one id from next-token logits the way SGLang does. It does not know where the randomness comes from. */

import type { LogitRun, NextTokenLogits } from "./next_token_logits.ts";

/** What restricts the draw. The logits are already normalised at the temperature. */
export interface SamplingLimits {
  readonly topP: number;
  /** Infinity keeps all. */
  readonly topK: number;
  readonly minP: number;
}

/**
 * Draws an id; `uniform` is in [0, 1). Kept are the `topK` likeliest ids, of which the mass before them is at most
 * `topP`, and which are at least `minP` times as likely as the likeliest: all three measured on the whole distribution.
 * Equally likely ids rank by id.
 */
export function sampleToken(logits: NextTokenLogits, uniform: number, limits: SamplingLimits): number {
  const runs = logits.runs();
  const masses = keptCounts(logits, runs, limits).map((kept, i) => kept * probability(logits, runs[i]!));
  let total = 0;
  for (const mass of masses) total += mass;
  let rest = uniform * total;
  let last = runs[0]!;
  let lastIndex = 0;
  for (const [i, run] of runs.entries()) {
    const mass = masses[i];
    if (mass === undefined) break;
    if (mass <= 0) continue;
    const each = probability(logits, run);
    const kept = Math.round(mass / each);
    if (rest < mass) return idOf(logits, run, Math.min(kept - 1, Math.floor(rest / each)));
    rest -= mass;
    last = run;
    lastIndex = kept - 1;
  }
  // Rounding can leave a remainder after the last kept id; that id is meant.
  return idOf(logits, last, lastIndex);
}

/** The ids that a draw within these limits is made from, likeliest first. */
export function keptIds(logits: NextTokenLogits, limits: SamplingLimits): number[] {
  const runs = logits.runs();
  return keptCounts(logits, runs, limits).flatMap((kept, i) => {
    const run = runs[i]!;
    // An id that can't be drawn is not among those that a draw is made from.
    if (probability(logits, run) === 0) return [];
    return Array.from({ length: kept }, (_, index) => idOf(logits, run, index));
  });
}

/** How many ids are kept of each run, up to the first run that is cut short. */
function keptCounts(logits: NextTokenLogits, runs: readonly LogitRun[], limits: SamplingLimits): number[] {
  const counts: number[] = [];
  const threshold = limits.minP * probability(logits, runs[0]!);
  let before = 0;
  let rank = 0;
  for (const run of runs) {
    const each = probability(logits, run);
    if (each < threshold || before > limits.topP) break;
    const byMass = limits.topP >= 1 || each === 0 ? run.count : Math.floor((limits.topP - before) / each) + 1;
    const kept = Math.min(run.count, limits.topK - rank, byMass);
    counts.push(kept);
    if (kept < run.count) break;
    before += run.count * each;
    rank += run.count;
    if (rank >= limits.topK) break;
  }
  return counts;
}

function probability(logits: NextTokenLogits, run: LogitRun): number {
  return Math.exp(logits.logprobOfLogit(run.logit));
}

function idOf(logits: NextTokenLogits, run: LogitRun, index: number): number {
  return run.id ?? logits.tailId(run.tailClass, index);
}
