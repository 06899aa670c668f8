/**
 * `POST /v1/chat/completions`: what of the request is not messages or tools. Loose: unknown fields are accepted and
 * listed as ignored. OpenAI clients send null for "not set", so null counts as absent. Messages and tools were JSON.parse's and are read by their own reader: checking
 * them here too would cost as much again with every turn.
 */

import { z } from "zod";
import { samplingWishes } from "./sampling_wishes.ts";
import { stopList } from "./stop_list.ts";

const count = z.int().min(1);

/** The request, messages and tools unread. */
export const ChatCompletionRequest = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(z.unknown()).min(1, "must hold at least one message"),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.union([
    z.enum(["auto", "none", "required"]),
    z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) }),
  ]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: count.nullish(),
  max_completion_tokens: count.nullish(),
  stop: z.union([z.string(), stopList(z.string())]).nullish(),
  n: z.int().min(1).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  return_token_ids: z.boolean().nullish(),
  response_format: z.looseObject({
    type: z.string(),
    json_schema: z.looseObject({ schema: z.unknown().optional() }).nullish(),
  }).nullish(),
  chat_template_kwargs: z.record(z.string(), z.json()).nullish(),
  reasoning_effort: z.string().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  functions: z.array(z.unknown()).nullish(),
  continue_final_message: z.boolean().nullish(),
  ...samplingWishes,
});
/** A checked request. */
export type ChatCompletionRequest = z.output<typeof ChatCompletionRequest>;

/** Fields that are read; anything else in a request is listed as ignored. */
export const CHAT_FIELDS: ReadonlySet<string> = new Set(Object.keys(ChatCompletionRequest.shape));
