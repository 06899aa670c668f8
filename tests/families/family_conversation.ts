/** Conversations for the table's tests: short ways to write them, and one that has everything an agent's history has. */

import type { AssistantMessage, Message, ToolDefinition } from "../../shared/core/message.ts";
import type { Renderer } from "../../shared/ports/renderer.ts";

export const TOOL: ToolDefinition = {
  name: "read",
  raw: {
    name: "read",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" }, limit: { type: "integer", default: 10 } } },
  },
};

export function user(content: string): Message {
  return { role: "user", content, source: 0 };
}

export function result(toolCallId: string, content: string): Message {
  return { role: "tool", content, toolCallId, source: 0 };
}

/** A reply; `calls` are the paths that it reads. */
export function reply(
  content: string,
  rest: { readonly reasoning?: string; readonly calls?: readonly AssistantMessage["toolCalls"][number][] } = {},
): AssistantMessage {
  const { reasoning = null, calls = [] } = rest;
  return { role: "assistant", content, reasoning, toolCalls: calls, form: "", source: 0 };
}

/** The nth call of a conversation, with an id as the family writes it. */
export function call(renderer: Renderer, index: number): AssistantMessage["toolCalls"][number] {
  const random = (digits: number) => index.toString(16).padStart(digits, "0");
  return {
    id: renderer.callId({ name: TOOL.name, priorCalls: index, random }),
    name: TOOL.name,
    arguments: JSON.stringify({ path: `file${index}.txt`, limit: index }),
  };
}

/** A reply and what comes after it. */
export interface Step {
  readonly answer: AssistantMessage;
  readonly appended: readonly Message[];
}

/** An agent's history after the first question, for a model that makes calls, and for one that makes none. */
export function agentSteps(renderer: Renderer, { singleCall }: { readonly singleCall: boolean }): Step[] {
  if (renderer.toolCallParser === null) {
    return [
      { answer: reply("A first answer.\n"), appended: [user("More, please: é 漢 😀\n\n")] },
      { answer: reply("A second."), appended: [user("")] },
      { answer: reply(""), appended: [user("?")] },
    ];
  }
  const first = singleCall ? [call(renderer, 0)] : [call(renderer, 0), call(renderer, 1)];
  const content = singleCall ? "" : "I look.";
  return [
    {
      answer: reply(content, { reasoning: "Which file?", calls: first }),
      appended: first.map(({ id }, index) => result(id, `Result ${index}: é 漢 😀\n`)),
    },
    {
      answer: reply("", { reasoning: "And more.", calls: [call(renderer, 2)] }),
      appended: [result(call(renderer, 2).id, "")],
    },
    {
      answer: reply("", { reasoning: "Once more.", calls: [call(renderer, 3)] }),
      appended: [result(call(renderer, 3).id, "3")],
    },
    { answer: reply("It says so.", { reasoning: "Clear." }), appended: [user("And now?")] },
    {
      answer: reply("", { reasoning: "Again.", calls: [call(renderer, 4)] }),
      appended: [result(call(renderer, 4).id, "4"), user("Stop.")],
    },
  ];
}
