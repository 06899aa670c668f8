/** `POST /generate`: token-in/token-out, or messages in. */

import { z } from "zod";
import { SamplingParams } from "./sampling_params.ts";

/** Messages and tools are read by the chat dialect; here they are only lists of objects. */
const objects = z.array(z.record(z.string(), z.json()));

/** The request. Exactly one of `input_ids` and `messages`. */
export const GenerateRequest = z.strictObject({
  input_ids: z.array(z.int()).min(1).optional(),
  messages: objects.min(1).optional(),
  tools: objects.optional(),
  chat_template_kwargs: z.record(z.string(), z.json()).optional(),
  model: z.string().min(1).optional(),
  sampling_params: SamplingParams.optional(),
  routing_key: z.string().min(1).max(256).optional(),
  stream: z.boolean().default(false),
}).refine(
  (request) => (request.input_ids === undefined) !== (request.messages === undefined),
  { error: "exactly one of input_ids and messages must be given", path: ["input_ids"] },
);
/** A checked request. */
export type GenerateRequest = z.output<typeof GenerateRequest>;

/** The answer, in the seed system's shape. */
export interface GenerationResult {
  text: string;
  token_ids: number[] | null;
  logprobs: number[] | null;
  tool_calls: { id: string; type: "function"; function: { name: string; arguments: string } }[] | null;
  reasoning: string | null;
  finish_reason: "stop" | "length" | "abort" | "tool_calls" | `error:${string}`;
  usage: {
    prompt_tokens: number;
    completion_tokens: number;
    cached_tokens: number | null;
    /** Those of the completion; where a text backend tells. */
    reasoning_tokens?: number;
  };
  weight_version: string | null;
  /** US dollars that a text backend's call cost; null where its price is not known. Absent: the model is our own. */
  cost_usd?: number | null;
}
