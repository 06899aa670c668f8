/** Anthropic messages: the answer's body, and what its stream shares with it. It reads no requests. */

import { createHash, type Hash } from "node:crypto";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { ToolCall } from "../../shared/core/message.ts";
import { isObject } from "./read_json.ts";
import type { Answer } from "../../shared/services/turns/shared_call.ts";

/** The body as JSON text. The arguments of calls stand in it as they were sampled: a number keeps its literal, keys their order. */
export function messagesBody(answer: Answer): string {
  const { reply } = answer;
  const blocks = [
    ...(reply.reasoning === null ? [] : [JSON.stringify(thinkingBlock(reply.reasoning))]),
    ...(reply.content === "" ? [] : [JSON.stringify({ type: "text", text: reply.content })]),
    ...reply.toolCalls.map(toolUseText),
  ];
  const head = JSON.stringify({
    id: messageId(answer.answerId),
    type: "message",
    role: "assistant",
    model: answer.model,
    ...stopOf(answer),
    usage: usageOf(answer),
  });
  return `${head.slice(0, -1)},"content":[${blocks.join(",")}]}`;
}

/** The id of an answer. */
export function messageId(answerId: string): string {
  return `msg_${answerId}`;
}

/** Why it ended. */
export function stopOf(answer: Answer): { readonly stop_reason: string; readonly stop_sequence: string | null } {
  switch (answer.finishReason) {
    case "tool_calls":
      return { stop_reason: "tool_use", stop_sequence: null };
    case "length":
      return { stop_reason: "max_tokens", stop_sequence: null };
    case "stop":
      return answer.stopString === null
        ? { stop_reason: "end_turn", stop_sequence: null }
        : { stop_reason: "stop_sequence", stop_sequence: answer.stopString };
  }
}

/** Input tokens are those that were not cached, as at Anthropic: the prompt's length is the sum. */
export function usageOf(answer: Answer): Record<string, unknown> {
  const cached = answer.cachedTokens ?? 0;
  return inputUsage(answer.promptTokens - cached, cached, answer.completionTokens);
}

/** Usage from its counts. */
export function inputUsage(input: number, cached: number, output: number): Record<string, unknown> {
  return {
    input_tokens: input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: output,
  };
}

/** Hashes the text of a thinking block for its signature. */
export function thinkingHash(): Hash {
  return createHash("sha256").update("verbatim thinking\0");
}

function thinkingBlock(text: string): Record<string, unknown> {
  return { type: "thinking", thinking: text, signature: thinkingHash().update(text).digest("base64") };
}

function toolUseText({ id, name, arguments: input }: ToolCall): string {
  return `${JSON.stringify({ type: "tool_use", id, name }).slice(0, -1)},"input":${objectText(input)}}`;
}

/** The JSON text of an object. Our parsers promise one; a text-level backend may have said anything. */
function objectText(text: string): string {
  if (isJsonObject(text)) return text;
  throw new VerbatimError(
    "engine_failed",
    "The arguments of a call are no JSON object, which this API has no form for",
  );
}

function isJsonObject(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}
