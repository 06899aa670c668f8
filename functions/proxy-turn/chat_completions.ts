/** OpenAI chat completions: reads requests, writes answers. It only translates. */

import { VerbatimError } from "../../shared/core/errors.ts";
import type { Json } from "../../shared/core/message.ts";
import type { SamplingParams } from "../../shared/core/sampling.ts";
import type { ParserRequest } from "../../shared/ports/renderer.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { parseWith } from "../../shared/http/parse_with.ts";
import { dataFrame } from "../../shared/http/sse.ts";
import { CHAT_FIELDS, ChatCompletionRequest } from "../../shared/schemas/chat_completions.ts";
import type { Answer, AnswerDelta, CallEvent } from "../../shared/services/shared_call.ts";
import { chatServedForm, readChatConversation } from "./chat_messages.ts";
import type { Dialect } from "./dialect.ts";

/** Reads a request. `tokenizer` gives the text of single tokens, for logprobs; `nowS` stamps stream chunks. */
export function readChatCompletion(
  json: unknown,
  context: { readonly tokenizerOf: (model: string | null) => Tokenizer },
): Dialect {
  const body = parseWith(ChatCompletionRequest, json, "body");
  refuseUnsupported(body);
  const model = body.model ?? null;
  const withLogprobs = body.logprobs === true;
  const withIds = body.return_token_ids === true;
  const withUsage = body.stream_options?.include_usage === true;
  const settings: Record<string, Json> = { ...body.chat_template_kwargs };
  if (typeof body.reasoning_effort === "string") settings.reasoning_effort = body.reasoning_effort;

  function logprobsOf(answer: Answer): unknown {
    if (!withLogprobs) return null;
    const tokenizer = context.tokenizerOf(model);
    return { content: Array.from(answer.completion, (id, k) => tokenLogprob(tokenizer, id, answer.logprobs[k]!)) };
  }

  return {
    name: "chat",
    request: {
      model,
      conversation: readChatConversation({
        messages: body.messages,
        tools: body.tools ?? undefined,
        chat_template_kwargs: settings,
      }),
      toolChoice: toolChoiceOf(body.tool_choice),
      wished: wishesOf(body),
      ignoredFields: Object.keys(body).filter((field) => !CHAT_FIELDS.has(field)).sort(),
      stream: body.stream === true,
    },
    formOf: chatServedForm,
    keepAlive: ": keep-alive\n\n",
    body: (answer) => ({
      id: answer.answerId,
      object: "chat.completion",
      created: answer.createdAtS,
      model: answer.model,
      choices: [{
        index: 0,
        message: messageOf(answer),
        finish_reason: answer.finishReason,
        logprobs: logprobsOf(answer),
        ...(withIds ? { token_ids: Array.from(answer.completion) } : {}),
        ...(answer.stopString === null ? {} : { matched_stop: answer.stopString }),
      }],
      usage: usageOf(answer),
      ...(withIds ? { prompt_token_ids: Array.from(answer.prompt.toArray()) } : {}),
    }),
    async *frames(events) {
      let head: Record<string, unknown> | null = null;
      for await (const event of events) {
        if (event.type === "started") {
          head = headOf(event);
          yield dataFrame(chunk(head, { role: "assistant", content: "" }));
        } else if (event.type === "delta") {
          yield dataFrame(chunk(head ??= {}, deltaOf(event.delta)));
        } else {
          const { answer } = event;
          const last = {
            verbatim: { turn: answer.turn },
            ...(withIds ? { prompt_token_ids: Array.from(answer.prompt.toArray()) } : {}),
          };
          const choice = {
            index: 0,
            delta: {},
            finish_reason: answer.finishReason,
            logprobs: logprobsOf(answer),
            ...(withIds ? { token_ids: Array.from(answer.completion) } : {}),
          };
          yield dataFrame({ ...head, choices: [choice], ...(withUsage ? {} : last) });
          if (withUsage) yield dataFrame({ ...head, choices: [], usage: usageOf(answer), ...last });
          yield "data: [DONE]\n\n";
        }
      }
    },
  };
}

function headOf(event: Extract<CallEvent, { type: "started" }>): Record<string, unknown> {
  return { id: event.answerId, object: "chat.completion.chunk", created: event.createdAtS, model: event.model };
}

function chunk(head: Record<string, unknown>, delta: Record<string, unknown>): unknown {
  return { ...head, choices: [{ index: 0, delta, finish_reason: null, logprobs: null }] };
}

function deltaOf(delta: AnswerDelta): Record<string, unknown> {
  switch (delta.type) {
    case "reasoning":
      return { reasoning_content: delta.text };
    case "content":
      return { content: delta.text };
    case "tool_call": {
      const { index, id, name } = delta;
      return { tool_calls: [{ index, id, type: "function", function: { name, arguments: delta.arguments } }] };
    }
  }
}

function messageOf(answer: Answer): Record<string, unknown> {
  const { reply } = answer;
  return {
    role: "assistant",
    // Beside calls, no text is null; alone it is "", since many clients take null for a broken answer.
    content: reply.content === "" && reply.toolCalls.length > 0 ? null : reply.content,
    ...(reply.reasoning === null ? {} : { reasoning_content: reply.reasoning }),
    ...(reply.toolCalls.length === 0 ? {} : {
      tool_calls: reply.toolCalls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
  };
}

function usageOf(answer: Answer): Record<string, unknown> {
  const completion = answer.completion.length;
  return {
    prompt_tokens: answer.promptTokens,
    completion_tokens: completion,
    total_tokens: answer.promptTokens + completion,
    prompt_tokens_details: { cached_tokens: answer.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: answer.reasoningTokens ?? 0 },
  };
}

function tokenLogprob(tokenizer: Tokenizer, id: number, logprob: number): unknown {
  const token = tokenizer.decode([id], { skipSpecialTokens: false });
  // A character of several tokens can only be put together from its bytes.
  const bytes = tokenizer.tokenBytes(id);
  return { token, logprob, bytes: bytes === null ? null : Array.from(bytes), top_logprobs: [] };
}

function toolChoiceOf(choice: ChatCompletionRequest["tool_choice"]): ParserRequest["toolChoice"] {
  if (choice === null || choice === undefined) return "auto";
  return typeof choice === "string" ? choice : { name: choice.function.name };
}

function wishesOf(body: ChatCompletionRequest): SamplingParams {
  const wished: SamplingParams = {};
  const limit = body.max_completion_tokens ?? body.max_tokens;
  if (typeof limit === "number") wished.max_new_tokens = limit;
  if (body.stop !== null && body.stop !== undefined) {
    const stops = (typeof body.stop === "string" ? [body.stop] : body.stop).filter((stop) => stop !== "");
    if (stops.length > 0) wished.stop = stops;
  }
  for (
    const name of [
      "temperature",
      "top_p",
      "top_k",
      "min_p",
      "frequency_penalty",
      "presence_penalty",
      "repetition_penalty",
    ] as const
  ) {
    const value = body[name];
    if (typeof value === "number") wished[name] = value;
  }
  if (typeof body.seed === "number") wished.sampling_seed = body.seed;
  if (body.logit_bias !== null && body.logit_bias !== undefined && Object.keys(body.logit_bias).length > 0) {
    wished.logit_bias = body.logit_bias;
  }
  return wished;
}

/** What would change the answer and can't be honoured is refused, never dropped. */
function refuseUnsupported(body: ChatCompletionRequest): void {
  const choice = body.tool_choice;
  if (choice === "required" || (typeof choice === "object" && choice !== null)) {
    throw unsupported("tool_choice", "only auto and none are supported: no grammar enforces a call here");
  }
  if ((body.n ?? 1) > 1) throw unsupported("n", "only 1 is supported: a rollout has one next turn");
  if ((body.top_logprobs ?? 0) > 0) {
    throw unsupported("top_logprobs", "only the sampled tokens' logprobs are supported");
  }
  if (body.response_format !== null && body.response_format !== undefined && body.response_format.type !== "text") {
    throw unsupported(
      "response_format",
      `"${body.response_format.type}" is not supported: no grammar enforces it here`,
    );
  }
}

function unsupported(field: string, reason: string): VerbatimError {
  return new VerbatimError("unsupported", `Field "${field}": ${reason}`, { details: { field, reason } });
}
