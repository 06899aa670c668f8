/**
 * `POST /v1/messages` and `/v1/messages/count_tokens`: what of the request is not messages, system or tools, which have a
 * reader of their own. Loose: unknown fields are accepted and listed as ignored; null counts as absent.
 */

import { z } from "zod";
import { samplingWishes } from "./sampling_wishes.ts";
import { stopList } from "./stop_list.ts";

const parallel = { disable_parallel_tool_use: z.boolean().nullish() };
const format = z.looseObject({ type: z.string(), schema: z.unknown().optional() });

/** The request, messages, system and tools unread. */
export const AnthropicRequest = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(z.unknown()).min(1, "must hold at least one message"),
  system: z.union([z.string(), z.array(z.unknown())]).nullish(),
  tools: z.array(z.unknown()).nullish(),
  tool_choice: z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("auto"), ...parallel }),
    z.looseObject({ type: z.literal("any"), ...parallel }),
    z.looseObject({ type: z.literal("none") }),
    z.looseObject({ type: z.literal("tool"), name: z.string(), ...parallel }),
  ]).nullish(),
  stream: z.boolean().nullish(),
  max_tokens: z.int().min(1).nullish(),
  stop_sequences: stopList(z.string()).nullish(),
  output_format: format.nullish(),
  output_config: z.looseObject({ format: format.nullish() }).nullish(),
  chat_template_kwargs: z.record(z.string(), z.json()).nullish(),
  ...samplingWishes,
});
/** A checked request. */
export type AnthropicRequest = z.output<typeof AnthropicRequest>;

/** Fields that are read; anything else in a request is listed as ignored. */
export const ANTHROPIC_FIELDS: ReadonlySet<string> = new Set(Object.keys(AnthropicRequest.shape));
