/** Whether two messages are one and the same in everything that is read of them. It knows no dialect. */

import type { AssistantMessage, Content, ContentPart, Message, ToolCall } from "./message.ts";

/** Equal in role, place, content, calls, reasoning and form. Costs a comparison of their texts, where they are two. */
export function sameMessage(left: Message, right: Message): boolean {
  if (left === right) return true;
  if (left.role !== right.role || left.source !== right.source) return false;
  if (!sameContent(left.content, right.content)) return false;
  if (left.role === "assistant") return right.role === "assistant" && sameReply(left, right);
  return left.role !== "tool" || (right.role === "tool" && left.toolCallId === right.toolCallId);
}

/** Number of leading messages that two conversations have in common. */
export function sharedMessages(left: readonly Message[], right: readonly Message[]): number {
  const most = Math.min(left.length, right.length);
  for (let at = 0; at < most; at++) if (!sameMessage(left[at]!, right[at]!)) return at;
  return most;
}

function sameReply(left: AssistantMessage, right: AssistantMessage): boolean {
  return left.reasoning === right.reasoning && left.reasoningPlace === right.reasoningPlace &&
    left.form === right.form && sameLists(left.toolCalls, right.toolCalls, sameCall);
}

function sameCall(left: ToolCall, right: ToolCall): boolean {
  return left.id === right.id && left.name === right.name && left.arguments === right.arguments;
}

function sameContent(left: Content, right: Content): boolean {
  if (typeof left === "string" || typeof right === "string") return left === right;
  return sameLists(left, right, samePart);
}

function samePart(left: ContentPart, right: ContentPart): boolean {
  if (left.type === "text") return right.type === "text" && left.text === right.text;
  return right.type === "image" && left.sha256 === right.sha256 && left.url === right.url;
}

function sameLists<Item>(
  left: readonly Item[],
  right: readonly Item[],
  same: (left: Item, right: Item) => boolean,
): boolean {
  return left.length === right.length && left.every((item, k) => same(item, right[k]!));
}
