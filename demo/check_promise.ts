/** Checks the promise from outside: the engine, asked again, gives every exported sampled token the logprob that was exported. */

import type { Engine } from "../shared/ports/engine.ts";
import type { ShownRegion } from "./show.ts";

/** What was found. */
export interface PromiseCheck {
  readonly tokens: number;
  readonly largestDifference: number;
  /** Of the exported logprobs. */
  readonly lowest: number;
  readonly highest: number;
}

/** Force-decodes prompt and completion in one call and compares where the mask is 1. */
export async function checkPromise(region: ShownRegion, engine: Engine): Promise<PromiseCheck> {
  const scores = await engine.score({
    rid: crypto.randomUUID().replaceAll("-", ""),
    prompt: Uint32Array.from(region.prompt_token_ids),
    response: Uint32Array.from(region.completion_token_ids),
  }, AbortSignal.timeout(60_000));
  let tokens = 0;
  let largestDifference = 0;
  let [lowest, highest] = [Infinity, -Infinity];
  region.loss_mask.forEach((mask, k) => {
    if (mask !== 1) return;
    tokens++;
    lowest = Math.min(lowest, region.logprobs[k]!);
    highest = Math.max(highest, region.logprobs[k]!);
    largestDifference = Math.max(largestDifference, Math.abs(scores[k]! - region.logprobs[k]!));
  });
  return { tokens, largestDifference, lowest, highest };
}
