/** Sampling parameters on the wire: SGLang's names and bounds, checked here so that a router never sees a bad request. */

import { z } from "zod";
import { stopList } from "./stop_list.ts";

const tokenId = z.int().min(0);

/** Strict: an unknown name is refused, because SGLang answers one with a bare 500. */
export const SamplingParams = z.strictObject({
  max_new_tokens: z.int().min(0),
  min_new_tokens: z.int().min(0),
  temperature: z.number().min(0),
  top_p: z.number().gt(0).max(1),
  top_k: z.int().refine((value) => value === -1 || value >= 1, "must be -1 (all) or at least 1"),
  min_p: z.number().min(0).max(1),
  frequency_penalty: z.number().min(-2).max(2),
  presence_penalty: z.number().min(-2).max(2),
  repetition_penalty: z.number().gt(0).max(2),
  stop: z.union([z.string().min(1).transform((one) => [one]), stopList(z.string().min(1))]),
  stop_token_ids: stopList(tokenId),
  stop_regex: z.union([z.string().min(1).transform((one) => [one]), stopList(z.string().min(1))]),
  ignore_eos: z.boolean(),
  skip_special_tokens: z.boolean(),
  spaces_between_special_tokens: z.boolean(),
  no_stop_trim: z.boolean(),
  json_schema: z.string().min(1),
  regex: z.string().min(1),
  ebnf: z.string().min(1),
  structural_tag: z.string().min(1),
  logit_bias: z.record(z.string().regex(/^\d+$/, "must be a token id"), z.number()),
  sampling_seed: z.int(),
  custom_params: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
}).partial().refine(
  (params) => [params.json_schema, params.regex, params.ebnf, params.structural_tag].filter(Boolean).length <= 1,
  "only one of json_schema, regex, ebnf and structural_tag can be set",
).refine(
  (params) => (params.min_new_tokens ?? 0) <= (params.max_new_tokens ?? Infinity),
  "min_new_tokens must not exceed max_new_tokens",
);
/** Checked sampling parameters. */
export type SamplingParams = z.output<typeof SamplingParams>;

/** Names an agent may be allowed to set. */
export const SAMPLING_NAMES: readonly string[] = Object.keys(SamplingParams.shape);
