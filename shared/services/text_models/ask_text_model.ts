/** One conversation asked of a text-level model, and what it took. It knows no dialect and records nothing. */

import { VerbatimError } from "../../core/errors.ts";
import type { Conversation } from "../../core/message.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { BackendDelta } from "../../ports/model_backend.ts";
import type { ParserRequest } from "../../ports/renderer.ts";
import type { GenerationResult } from "../../schemas/generate.ts";
import type { TextModel } from "../model_catalog.ts";

/** What is asked. */
export interface TextQuestion {
  readonly model: TextModel;
  readonly conversation: Conversation;
  readonly sampling: SamplingParams;
  readonly toolChoice: ParserRequest["toolChoice"];
  /** False: one call at most. */
  readonly parallelCalls: boolean;
  /** Told of the reply as it comes; absent: it comes whole. */
  readonly onDelta?: ((delta: BackendDelta) => void) | undefined;
}

/** Asks. Template settings mean nothing to an API of text, but for the effort of reasoning; others are `unsupported`. */
export async function askTextModel(
  question: TextQuestion,
  metrics: Metrics,
  signal: AbortSignal,
): Promise<GenerationResult> {
  const { model, conversation, onDelta } = question;
  const { reasoning_effort: effort, ...others } = conversation.settings;
  for (const name of Object.keys(others)) throw unsupported(`chat_template_kwargs.${name}`);
  if (effort !== undefined && typeof effort !== "string") throw unsupported("chat_template_kwargs.reasoning_effort");
  const result = await model.backend.generate({
    messages: conversation.messages,
    tools: conversation.tools,
    tool_choice: question.toolChoice,
    parallel_tool_calls: question.parallelCalls,
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    sampling_params: question.sampling,
    signal,
    ...(onDelta === undefined ? {} : { onDelta }),
  });
  const { usage } = result;
  metrics.textAnswered({
    model: model.name,
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.cached_tokens,
    completionTokens: usage.completion_tokens,
    reasoningTokens: usage.reasoning_tokens ?? null,
    costUsd: result.cost_usd ?? null,
  });
  return result;
}

function unsupported(field: string): VerbatimError {
  const reason = "a text-level backend has no template";
  return new VerbatimError("unsupported", `Field "${field}": ${reason}`, { details: { field, reason } });
}
