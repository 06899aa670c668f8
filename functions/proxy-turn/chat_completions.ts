/** OpenAI chat completions: reads requests. It only translates; answers are written beside it. */

import type { Json } from "../../shared/core/message.ts";
import type { SamplingParams } from "../../shared/core/sampling.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import type { ParserRequest } from "../../shared/ports/renderer.ts";
import { parseWith } from "../../shared/http/parse_with.ts";
import { dataFrame } from "../../shared/http/sse.ts";
import { CHAT_FIELDS, ChatCompletionRequest } from "../../shared/schemas/chat_completions.ts";
import { chatBody, chatFrames, type ChatView } from "./chat_answer.ts";
import { chatServedForm, readChatConversation } from "./chat_messages.ts";
import { constrain, type Shape } from "./constrain.ts";
import type { Dialect, ReadContext } from "./dialect.ts";
import { openaiStreamError } from "./openai_errors.ts";
import { invalid, isJson, unsupported } from "./read_json.ts";
import { readWishes } from "./read_wishes.ts";

/** Reads a request. */
export async function readChatCompletion(json: unknown, context: ReadContext): Promise<Dialect> {
  const body = parseWith(ChatCompletionRequest, json, "body");
  refuseUnsupported(body);
  const model = body.model ?? null;
  const settings: Record<string, Json> = { ...body.chat_template_kwargs };
  if (typeof body.reasoning_effort === "string") settings.reasoning_effort = body.reasoning_effort;
  const conversation = readChatConversation({
    messages: body.messages,
    tools: body.tools ?? undefined,
    chat_template_kwargs: settings,
  });
  const shape = shapeOf(body);
  const constraint = await constrain({ model, conversation, shape }, context);
  if (body.return_token_ids === true && context.rendererOf(model) === null) {
    throw unsupported("return_token_ids", "a text-level backend shows no tokens");
  }
  const view: ChatView = {
    logprobsBy: body.logprobs === true ? tokenizerOf(model, context) : null,
    tokenIds: body.return_token_ids === true,
    usageChunk: body.stream_options?.include_usage === true,
  };
  return {
    name: "chat",
    request: {
      model,
      conversation,
      toolChoice: constraint.toolChoice,
      parallelCalls: shape.parallelCalls,
      wished: { ...wishesOf(body), ...constraint.wished },
      ignoredFields: [...ignoredOf(body)].sort(),
      stream: body.stream === true,
      ...((body.top_logprobs ?? 0) > 0 ? { topLogprobs: body.top_logprobs! } : {}),
      keepsInput: false,
    },
    formOf: chatServedForm,
    keepAlive: ": keep-alive\n\n",
    body: (answer) => JSON.stringify(chatBody(answer, view)),
    frames: (events) => chatFrames(events, view),
    failure: (error) => dataFrame(openaiStreamError(error)),
  };
}

/** Tokens are shown where there are some. */
function tokenizerOf(model: string | null, context: ReadContext): Tokenizer {
  const renderer = context.rendererOf(model);
  if (renderer === null) throw unsupported("logprobs", "a text-level backend shows no tokens");
  return renderer.tokenizer;
}

function ignoredOf(body: ChatCompletionRequest): string[] {
  const ignored = Object.keys(body).filter((field) => !CHAT_FIELDS.has(field));
  // What happens anyway is not ignored.
  return body.parallel_tool_calls === false ? [...ignored, "parallel_tool_calls"] : ignored;
}

function shapeOf(body: ChatCompletionRequest): Shape {
  return {
    toolChoice: { field: "tool_choice", choice: toolChoiceOf(body.tool_choice) },
    parallelCalls: body.parallel_tool_calls !== false,
    schema: schemaOf(body.response_format),
  };
}

function toolChoiceOf(choice: ChatCompletionRequest["tool_choice"]): ParserRequest["toolChoice"] {
  if (choice === null || choice === undefined) return "auto";
  return typeof choice === "string" ? choice : { name: choice.function.name };
}

function schemaOf(format: ChatCompletionRequest["response_format"]): Shape["schema"] {
  if (format === null || format === undefined) return null;
  const field = "response_format";
  switch (format.type) {
    case "text":
      return null;
    case "json_object":
      return { field, schema: { type: "object" } };
    case "json_schema": {
      const schema = format.json_schema?.schema ?? {};
      if (!isJson(schema)) throw unsupported(`${field}.json_schema.schema`, "it is nested too deeply");
      return { field, schema };
    }
    default:
      throw unsupported(`${field}.type`, `only text, json_object and json_schema, not "${format.type}"`);
  }
}

function wishesOf(body: ChatCompletionRequest): SamplingParams {
  const limit = body.max_completion_tokens ?? body.max_tokens;
  const stops = typeof body.stop === "string" ? [body.stop] : body.stop ?? [];
  return readWishes(body, { limit: limit ?? null, stops });
}

/** What would change the answer and can't be honoured is refused, never dropped. */
function refuseUnsupported(body: ChatCompletionRequest): void {
  if ((body.n ?? 1) > 1) throw unsupported("n", "only 1 is supported: a rollout has one next turn");
  if ((body.top_logprobs ?? 0) > 0 && body.logprobs !== true) {
    throw invalid("top_logprobs", "only with logprobs: true");
  }
  if ((body.functions ?? []).length > 0) throw unsupported("functions", "send tools instead");
  if (body.continue_final_message === true) {
    throw unsupported("continue_final_message", "a reply always begins a turn of its own");
  }
}
