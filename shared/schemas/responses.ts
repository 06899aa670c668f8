/**
 * `POST /v1/responses`: what of the request is not input or tools, which have a reader of their own. Loose: unknown fields
 * are accepted and listed as ignored; null counts as absent.
 */

import { z } from "zod";
import { samplingWishes } from "./sampling_wishes.ts";
import { stopList } from "./stop_list.ts";

/** The request, input and tools unread. */
export const ResponsesRequest = z.looseObject({
  model: z.string().nullish(),
  input: z.union([z.string(), z.array(z.unknown())]).nullish(),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z.unknown().optional(),
  prompt: z.unknown().optional(),
  background: z.boolean().nullish(),
  store: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  include: z.array(z.string()).nullish(),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.union([
    z.enum(["auto", "none", "required"]),
    z.looseObject({
      type: z.string(),
      name: z.string().nullish(),
      mode: z.enum(["auto", "required"]).nullish(),
    }),
  ]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  stop: z.union([z.string(), stopList(z.string())]).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }).nullish(),
  text: z.looseObject({
    format: z.looseObject({ type: z.string(), schema: z.unknown().optional() }).nullish(),
    verbosity: z.string().nullish(),
  }).nullish(),
  truncation: z.enum(["auto", "disabled"]).nullish(),
  top_logprobs: z.int().min(0).nullish(),
  chat_template_kwargs: z.record(z.string(), z.json()).nullish(),
  ...samplingWishes,
});
/** A checked request. */
export type ResponsesRequest = z.output<typeof ResponsesRequest>;

/** Fields that are read; anything else in a request is listed as ignored. */
export const RESPONSES_FIELDS: ReadonlySet<string> = new Set(Object.keys(ResponsesRequest.shape));
