/** Sampling that agents ask for, in SGLang's names. It does not decide what of it holds. */

import type { SamplingParams } from "../../shared/core/sampling.ts";
import type { SamplingWishes } from "../../shared/schemas/sampling_wishes.ts";

/** Fields that dialects name as SGLang does. */
const SAME_NAME = [
  "temperature",
  "top_p",
  "min_p",
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "stop_token_ids",
  "stop_regex",
  "ignore_eos",
  "regex",
  "ebnf",
  "custom_params",
] as const;

/** The wishes of a body, with its token limit and stop strings. Null is not set, an empty stop string no stop. */
export function readWishes(
  body: SamplingWishes,
  own: { readonly limit: number | null; readonly stops: readonly string[] },
): SamplingParams {
  const wished: SamplingParams = {};
  if (own.limit !== null) wished.max_new_tokens = own.limit;
  const stops = own.stops.filter((stop) => stop !== "");
  if (stops.length > 0) wished.stop = stops;
  for (const name of SAME_NAME) {
    const value = body[name] ?? null;
    if (value !== null) Object.assign(wished, { [name]: value });
  }
  if (typeof body.top_k === "number") wished.top_k = body.top_k === 0 ? -1 : body.top_k;
  if (typeof body.min_tokens === "number") wished.min_new_tokens = body.min_tokens;
  if (typeof body.seed === "number") wished.sampling_seed = body.seed;
  const biases = body.logit_bias ?? {};
  if (Object.keys(biases).length > 0) wished.logit_bias = biases;
  return wished;
}
