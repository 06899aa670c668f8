/**
 * Whether a template still writes the reasoning of earlier replies once more messages follow. It asks the template itself,
 * with a conversation of the same shape and made-up reasoning, and knows nothing of tokens.
 */

import { type Conversation, type Message, textOf } from "../core/message.ts";
import { plain } from "./jinja/text.ts";
import type { PromptTemplate } from "./prompt_template.ts";

/** What templates look at in a text is how it begins and ends. */
const KEPT_ENDS = 20;
/** Letters only, and longer than any text of the made-up conversation. */
const SENTINEL = "VerbatimReasoningThatTheTemplateStillWrites";

/**
 * Whether every assistant message of these indexes is written with its reasoning, had it any. A conversation the template
 * refuses is `invalid_request`.
 */
export function keepsReasoning(
  prompt: PromptTemplate,
  conversation: Conversation,
  assistants: readonly number[],
): boolean {
  const marks = new Map(assistants.map((index, k) => [index, `${SENTINEL}${spelled(k)}`]));
  const messages = conversation.messages.map((message, index) => outlined(message, marks.get(index) ?? null));
  const text = plain(prompt.render({ ...conversation, messages, addGenerationPrompt: true }));
  return [...marks.values()].every((mark) => text.includes(mark));
}

/** A message of the same shape that says nothing. */
function outlined(message: Message, reasoning: string | null): Message {
  if (message.role !== "assistant") return { ...message, content: endsOf(textOf(message.content)) };
  const toolCalls = message.toolCalls.map((call) => ({ ...call, arguments: "{}" }));
  return { ...message, content: endsOf(message.content), reasoning, toolCalls };
}

function endsOf(text: string): string {
  return text.length <= 2 * KEPT_ENDS ? text : text.slice(0, KEPT_ENDS) + text.slice(-KEPT_ENDS);
}

/** A number in letters, in pairs so that none is the beginning of another. */
function spelled(number: number): string {
  return `Q${[...String(number)].map((digit) => String.fromCharCode(97 + Number(digit))).join("")}Z`;
}
