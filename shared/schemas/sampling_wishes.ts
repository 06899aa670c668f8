/** Sampling that a request of any dialect may ask for: OpenAI's fields, and those that SGLang and vLLM add to them. */

import { z } from "zod";
import { stopList } from "./stop_list.ts";

const text = z.string().min(1);

/** Fields by the names of the APIs. Null is not set. */
export const samplingWishes = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  /** 0 is -1, all, as Anthropic has it. */
  top_k: z.int().min(-1, "must be -1 (all) or at least 0").nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  repetition_penalty: z.number().gt(0).max(2).nullish(),
  seed: z.int().nullish(),
  logit_bias: z.record(z.string().regex(/^\d+$/, "must be a token id"), z.number()).nullish(),
  min_tokens: z.int().min(0).nullish(),
  stop_token_ids: stopList(z.int().min(0)).nullish(),
  stop_regex: z.union([text.transform((one) => [one]), stopList(text)]).nullish(),
  ignore_eos: z.boolean().nullish(),
  regex: text.nullish(),
  ebnf: text.nullish(),
  custom_params: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).nullish(),
};

const SamplingWishesObject = z.object(samplingWishes);
/** Checked wishes. */
export type SamplingWishes = z.output<typeof SamplingWishesObject>;
