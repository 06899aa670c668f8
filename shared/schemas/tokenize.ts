/** Requests of the tokenize endpoints. */

import { z } from "zod";

const objects = z.array(z.record(z.string(), z.json()));
const settings = z.record(z.string(), z.json());
const ids = z.array(z.int());
const tools = objects.nullish();
const model = z.string().min(1).optional();

/** `POST /tokenize`: a prompt, or messages. */
export const TokenizeRequest = z.strictObject({
  prompt: z.union([z.string(), z.array(z.string())]).optional(),
  messages: objects.min(1).optional(),
  tools,
  chat_template_kwargs: settings.optional(),
  add_generation_prompt: z.boolean().default(true),
  add_special_tokens: z.boolean().default(true),
  model,
}).refine(
  (request) => (request.prompt === undefined) !== (request.messages === undefined),
  { error: "exactly one of prompt and messages must be given", path: ["prompt"] },
);

/** `POST /tokenize/increment`: what to put after a series. */
export const IncrementRequest = z.strictObject({
  messages: objects,
  appended: objects.min(1),
  tools,
  chat_template_kwargs: settings.optional(),
  closed: z.boolean(),
  model,
});

/** `POST /tokenize/decode` and `POST /detokenize`. */
export const DecodeRequest = z.strictObject({
  tokens: z.union([ids, z.array(ids)]),
  skip_special_tokens: z.boolean().default(true),
  model,
});

/** `POST /tokenize/parse`. A parser of null means none, absent the configured one. */
export const ParseRequest = z.strictObject({
  text: z.string().optional(),
  tokens: ids.optional(),
  tools,
  tool_choice: z.union([
    z.enum(["auto", "none", "required"]),
    z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) }),
  ]).default("auto"),
  tool_call_parser: z.string().nullish(),
  reasoning_parser: z.string().nullish(),
  prompt_opens_reasoning: z.boolean().default(false),
  chunks: z.array(z.int().min(0)).optional(),
}).refine(
  (request) => (request.text === undefined) !== (request.tokens === undefined),
  { error: "exactly one of text and tokens must be given", path: ["text"] },
).refine(
  (request) => (request.chunks ?? []).every((point, i, all) => i === 0 || all[i - 1]! <= point),
  { error: "must be ascending split points", path: ["chunks"] },
);

/** `POST /tokenize/parse_function_call`, SGLang's shape. */
export const ParseFunctionCallRequest = z.strictObject({
  text: z.string(),
  tools: objects,
  tool_call_parser: z.string().optional(),
});

/** `POST /tokenize/separate_reasoning`, SGLang's shape. */
export const SeparateReasoningRequest = z.strictObject({
  text: z.string(),
  reasoning_parser: z.string().optional(),
});
