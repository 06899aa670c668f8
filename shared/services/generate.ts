/** `generate`: token-in/token-out, or messages in, with nothing recorded. */

import { checkedIds } from "../core/checked_ids.ts";
import type { Conversation } from "../core/message.ts";
import { type SamplingParams, withTokenLimit } from "../core/sampling.ts";
import { TokenSeries } from "../core/token_series.ts";
import type { Ids } from "../ports/ids.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import type { GenerationResult } from "../schemas/generate.ts";
import { checkSamplingIds } from "./turns/check_sampling_ids.ts";
import { tokensLeft } from "./turns/context_length.ts";
import type { Model } from "./model_catalog.ts";
import type { ReadCompletion } from "./turns/read_completion.ts";
import { sample } from "./turns/sample.ts";

/** What is asked for: ids as they are, or a conversation to render. */
export interface GenerateCall {
  readonly model: Model;
  readonly input: { readonly ids: readonly number[] } | { readonly conversation: Conversation };
  readonly sampling: SamplingParams;
  readonly routingKey: string | null;
  readonly stream: boolean;
}

/** Deltas, where they were asked for, then the whole. Ids and logprobs are null of a text-level model. */
export type GenerateEvent =
  | {
    readonly type: "delta";
    readonly token_ids: readonly number[] | null;
    readonly logprobs: readonly number[] | null;
    readonly text: string;
  }
  | { readonly type: "result"; readonly result: GenerationResult };

/** Runs one call. The limit is what the caller asks for, clipped to the context; without one, all that is left. */
export async function* generate(call: GenerateCall, ids: Ids, signal: AbortSignal): AsyncGenerator<GenerateEvent> {
  const { model } = call;
  const { renderer } = model;
  const { vocabSize } = renderer.tokenizer;
  const conversation = "conversation" in call.input ? call.input.conversation : null;
  const prompt = "conversation" in call.input
    ? await renderer.renderPrompt(call.input.conversation, { signal })
    : { ids: checkedIds(call.input.ids, vocabSize, "input_ids"), opensReasoning: false };
  checkSamplingIds(call.sampling, vocabSize, "sampling_params.");
  const events = sample({
    model,
    rid: ids.uuid(),
    input: TokenSeries.of(prompt.ids),
    sampling: withTokenLimit(
      call.sampling,
      tokensLeft({
        promptTokens: prompt.ids.length,
        maxContextTokens: model.maxContextTokens,
        wished: call.sampling.max_new_tokens ?? null,
      }),
    ),
    routingKey: call.routingKey,
    stream: call.stream,
    tools: conversation?.tools ?? [],
    toolChoice: "auto",
    opensReasoning: prompt.opensReasoning,
    fairKey: `generate ${call.routingKey ?? ""}`,
    onAbort: "resume",
  }, signal);
  for await (const event of events) {
    if (event.type === "tokens") {
      if (call.stream) yield { type: "delta", token_ids: event.ids, logprobs: event.logprobs, text: event.text };
      continue;
    }
    const { completion } = event;
    const stop = call.sampling.no_stop_trim === true ? stopText(completion, renderer.tokenizer) : "";
    // Text that was held back until the end belongs to no token of its own.
    const rest = event.text + stop;
    if (call.stream && rest !== "") yield { type: "delta", token_ids: [], logprobs: [], text: rest };
    const { toolCalls, reasoning } = completion.parsed;
    const priorCalls = countCalls(conversation);
    yield {
      type: "result",
      result: {
        text: completion.text + stop,
        token_ids: Array.from(completion.ids),
        logprobs: [...completion.logprobs],
        tool_calls: toolCalls.length === 0 ? null : toolCalls.map((toolCall, k) => ({
          id: renderer.callId({
            name: toolCall.name,
            priorCalls: priorCalls + k,
            random: (digits) => ids.hex(digits),
          }),
          type: "function" as const,
          function: { name: toolCall.name, arguments: toolCall.arguments },
        })),
        reasoning,
        finish_reason: completion.finishReason,
        usage: {
          prompt_tokens: prompt.ids.length,
          completion_tokens: completion.ids.length,
          cached_tokens: event.cachedTokens,
        },
        weight_version: event.weightVersion,
      },
    };
  }
}

/** The stop that ended a completion, as text; `no_stop_trim` keeps it. */
function stopText(completion: ReadCompletion, tokenizer: Tokenizer): string {
  const { finish, ids, closed } = completion;
  if (finish.type !== "stop") return "";
  if (typeof finish.matched === "string") return finish.matched;
  return closed ? tokenizer.decode(ids.subarray(-1)) : "";
}

/** Calls that a conversation already holds; some families number them. */
export function countCalls(conversation: Conversation | null): number {
  let calls = 0;
  for (const message of conversation?.messages ?? []) {
    if (message.role === "assistant") calls += message.toolCalls.length;
  }
  return calls;
}
