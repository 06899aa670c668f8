/** OpenAI Responses: the answer's body and its items, which the stream gives one by one. It reads no requests. */

import type { ToolCall } from "../../shared/core/message.ts";
import type { Answer } from "../../shared/services/turns/shared_call.ts";
import { encryptedContent, itemId, responseId } from "./response_ids.ts";

/** What a request asked to see, and what an answer repeats of it. */
export interface ResponseView {
  /** Reasoning as a summary; else as the text it is. */
  readonly summary: boolean;
  /** A value that stands for the reasoning, for clients that send it back. */
  readonly encrypted: boolean;
  readonly request: Readonly<Record<string, unknown>>;
}

/** An item of the output. */
export type OutputItem = { readonly id: string; readonly type: string; readonly [key: string]: unknown };

/** Whether an item is under way, whole, or was cut off. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** The answer's body. */
export function responseBody(answer: Answer, view: ResponseView): Record<string, unknown> {
  return responseObject(answer, view, { ...endOf(answer), output: outputOf(answer, view), usage: usageOf(answer) });
}

/** A response in any state. */
export function responseObject(
  answer: Pick<Answer, "answerId" | "createdAtS" | "model">,
  view: ResponseView,
  state: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return {
    id: responseId(answer.answerId),
    object: "response",
    created_at: answer.createdAtS,
    error: null,
    incomplete_details: null,
    model: answer.model,
    ...view.request,
    background: false,
    ...state,
  };
}

/** How it ended. */
export function endOf(answer: Answer): Record<string, unknown> {
  if (answer.finishReason !== "length") return { status: "completed" };
  return { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
}

/** Tokens, as OpenAI counts them. */
export function usageOf(answer: Answer): Record<string, unknown> {
  const output = answer.completionTokens;
  return {
    input_tokens: answer.promptTokens,
    input_tokens_details: { cached_tokens: answer.cachedTokens ?? 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: answer.reasoningTokens ?? 0 },
    total_tokens: answer.promptTokens + output,
  };
}

function outputOf(answer: Answer, view: ResponseView): OutputItem[] {
  const { answerId, reply } = answer;
  const lastStatus = answer.finishReason === "length" ? "incomplete" : "completed";
  const hasMessage = isMessageServed(reply);
  const isCutInReasoning = reply.content === "" && reply.toolCalls.length === 0 && reply.reasoning !== null;
  return [
    ...(reply.reasoning === null ? [] : [
      reasoningItem(itemId({ answerId, kind: "reasoning", index: 0 }), view, {
        text: reply.reasoning,
        status: isCutInReasoning ? lastStatus : "completed",
      }),
    ]),
    ...(hasMessage
      ? [
        messageItem(itemId({ answerId, kind: "message", index: 0 }), {
          text: reply.content,
          status: isCutInReasoning ? "completed" : lastStatus,
        }),
      ]
      : []),
    ...reply.toolCalls.map((call, index) =>
      callItem(itemId({ answerId, kind: "function_call", index }), { call, status: "completed" })
    ),
  ];
}

/** Beside calls, no text is no message; an answer of nothing is an empty one. */
export function isMessageServed(reply: { readonly content: string; readonly toolCalls: readonly ToolCall[] }): boolean {
  return reply.content !== "" || reply.toolCalls.length === 0;
}

/** Reasoning as text or as a summary; text null: nothing is said yet. */
export function reasoningItem(
  id: string,
  view: ResponseView,
  state: { readonly text: string | null; readonly status: ItemStatus },
): OutputItem {
  const parts = state.text === null ? [] : [reasoningPart(state.text, view)];
  return {
    id,
    type: "reasoning",
    summary: view.summary ? parts : [],
    ...(view.summary ? {} : { content: parts }),
    ...(view.encrypted ? { encrypted_content: encryptedContent(id) } : {}),
    status: state.status,
  };
}

/** The part of a reasoning item. */
export function reasoningPart(text: string, view: ResponseView): Record<string, unknown> {
  return { type: view.summary ? "summary_text" : "reasoning_text", text };
}

/** A message; text null: nothing is said yet. */
export function messageItem(
  id: string,
  state: { readonly text: string | null; readonly status: ItemStatus },
): OutputItem {
  const content = state.text === null ? [] : [textPart(state.text)];
  return { id, type: "message", status: state.status, role: "assistant", content };
}

/** The part of a message. */
export function textPart(text: string): Record<string, unknown> {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

/** A call; while it is under way its arguments are empty. */
export function callItem(
  id: string,
  { call, status }: { readonly call: ToolCall; readonly status: ItemStatus },
): OutputItem {
  return {
    id,
    type: "function_call",
    status,
    call_id: call.id,
    name: call.name,
    arguments: status === "in_progress" ? "" : call.arguments,
  };
}
