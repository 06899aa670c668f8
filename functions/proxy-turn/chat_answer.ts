/** OpenAI chat completions: answers as a body and as a stream. It reads no requests. */

import { dataFrame } from "../../shared/http/sse.ts";
import type { TokensChunk, TopLogprobs } from "../../shared/ports/engine.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import type { Answer, AnswerDelta, CallEvent } from "../../shared/services/turns/shared_call.ts";

/** What a request asked to see beside the message. */
export interface ChatView {
  /** The tokenizer where logprobs are asked for: it has the text of single tokens. */
  readonly logprobsBy: Tokenizer | null;
  readonly tokenIds: boolean;
  /** A chunk with the usage at the end of a stream. */
  readonly usageChunk: boolean;
}

/** The answer's body. */
export function chatBody(answer: Answer, view: ChatView): Record<string, unknown> {
  return {
    id: chatId(answer.answerId),
    object: "chat.completion",
    created: answer.createdAtS,
    model: answer.model,
    choices: [{
      index: 0,
      message: messageOf(answer),
      finish_reason: answer.finishReason,
      logprobs: logprobsOf(answer, view),
      ...tokenIdsOf(answer, view),
      ...matchedStop(answer),
    }],
    usage: usageOf(answer),
    ...promptIdsOf(answer, view),
  };
}

/**
 * The answer's stream. Logprobs go out with the next thing that is said after their tokens were sampled; those of
 * tokens that say nothing more come with the finish reason. Token ids come whole with the finish reason, because
 * clients that join chunks keep the last value of a field they do not know.
 */
export async function* chatFrames(events: AsyncIterable<CallEvent>, view: ChatView): AsyncGenerator<string> {
  let head: Record<string, unknown> = {};
  const logprobs = new PendingLogprobs(view.logprobsBy);
  for await (const event of events) {
    switch (event.type) {
      case "started":
        head = {
          id: chatId(event.answerId),
          object: "chat.completion.chunk",
          created: event.createdAtS,
          model: event.model,
        };
        yield dataFrame(chunk(head, { role: "assistant", content: "" }, null));
        break;
      case "tokens":
        logprobs.add(event);
        break;
      case "delta":
        yield dataFrame(chunk(head, deltaOf(event.delta), logprobs.take()));
        break;
      case "end":
        yield* lastFrames(event.answer, head, logprobs.rest(event.answer), view);
    }
  }
}

function* lastFrames(
  answer: Answer,
  head: Record<string, unknown>,
  logprobs: unknown,
  view: ChatView,
): Generator<string> {
  const last = { verbatim: { turn: answer.turn }, ...promptIdsOf(answer, view) };
  const choice = {
    index: 0,
    delta: {},
    finish_reason: answer.finishReason,
    logprobs,
    ...tokenIdsOf(answer, view),
    ...matchedStop(answer),
  };
  yield dataFrame({ ...head, choices: [choice], ...(view.usageChunk ? {} : last) });
  if (view.usageChunk) yield dataFrame({ ...head, choices: [], usage: usageOf(answer), ...last });
  yield "data: [DONE]\n\n";
}

/** Logprobs of sampled tokens that no chunk has carried yet. */
class PendingLogprobs {
  readonly #tokenizer: Tokenizer | null;
  #pending: unknown[] = [];
  #added = 0;

  constructor(tokenizer: Tokenizer | null) {
    this.#tokenizer = tokenizer;
  }

  add({ ids, logprobs, top }: Pick<TokensChunk, "ids" | "logprobs" | "top">): void {
    const tokenizer = this.#tokenizer;
    if (tokenizer === null) return;
    ids.forEach((id, k) => this.#pending.push(tokenLogprobs(tokenizer, [logprobs[k]!, id], top?.[k])));
    this.#added += ids.length;
  }

  /** For a chunk; null where there are none. */
  take(): unknown {
    const content = this.#pending;
    this.#pending = [];
    return content.length === 0 ? null : { content };
  }

  /** What is left once the whole answer is known. */
  rest(answer: Answer): unknown {
    const from = this.#added;
    const { completion, logprobs: all, topLogprobs } = answer;
    if (all === null) return null;
    const logprobs = Array.from({ length: completion.length - from }, (_, k) => all[from + k]!);
    const top = topLogprobs === null ? {} : { top: topLogprobs.slice(from) };
    this.add({ ids: Array.from(completion.subarray(from)), logprobs, ...top });
    return this.take();
  }
}

function chatId(answerId: string): string {
  return `chatcmpl-${answerId}`;
}

function chunk(head: Record<string, unknown>, delta: Record<string, unknown>, logprobs: unknown): unknown {
  return { ...head, choices: [{ index: 0, delta, finish_reason: null, logprobs }] };
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
  const completion = answer.completionTokens;
  return {
    prompt_tokens: answer.promptTokens,
    completion_tokens: completion,
    total_tokens: answer.promptTokens + completion,
    prompt_tokens_details: { cached_tokens: answer.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: answer.reasoningTokens ?? 0 },
  };
}

function logprobsOf({ completion, logprobs, topLogprobs }: Answer, { logprobsBy }: ChatView): unknown {
  if (logprobsBy === null || logprobs === null) return null;
  return {
    content: Array.from(completion, (id, k) => tokenLogprobs(logprobsBy, [logprobs[k]!, id], topLogprobs?.[k])),
  };
}

/** A sampled token; a replayed answer has no top lists. */
function tokenLogprobs(tokenizer: Tokenizer, sampled: TopLogprobs[number], top: TopLogprobs = []): unknown {
  return {
    ...tokenLogprob(tokenizer, sampled),
    top_logprobs: top.map((likely) => tokenLogprob(tokenizer, likely)),
  };
}

function tokenLogprob(tokenizer: Tokenizer, [logprob, id]: TopLogprobs[number]): Record<string, unknown> {
  const token = tokenizer.decode([id], { skipSpecialTokens: false });
  // A character of several tokens can only be put together from its bytes.
  const bytes = tokenizer.tokenBytes(id);
  return { token, logprob, bytes: bytes === null ? null : Array.from(bytes) };
}

function tokenIdsOf(answer: Answer, view: ChatView): Record<string, unknown> {
  return view.tokenIds ? { token_ids: Array.from(answer.completion) } : {};
}

function promptIdsOf(answer: Answer, view: ChatView): Record<string, unknown> {
  return view.tokenIds ? { prompt_token_ids: Array.from(answer.prompt.toArray()) } : {};
}

function matchedStop(answer: Answer): Record<string, unknown> {
  return answer.stopString === null ? {} : { matched_stop: answer.stopString };
}
