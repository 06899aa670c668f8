/** Conversations of the golden files, in OpenAI's chat form, as canonical ones. */

import assert from "node:assert/strict";
import type { Conversation, Json, Message, ToolCall, ToolDefinition } from "../../shared/core/message.ts";

interface WrittenCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

interface WrittenMessage {
  readonly role: string;
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly WrittenCall[];
  readonly tool_call_id?: string;
}

/** One conversation of a file. */
export interface GoldenConversation {
  readonly messages: readonly WrittenMessage[];
  readonly tools: readonly { readonly function: { readonly name: string; readonly [key: string]: Json } }[];
  readonly settings: { readonly [name: string]: Json };
  readonly add_generation_prompt: boolean;
}

/** The conversation in canonical form. */
export function canonical({ messages, tools, settings }: GoldenConversation): Conversation {
  return {
    messages: messages.map(message),
    tools: tools.map(({ function: raw }): ToolDefinition => ({ name: raw.name, raw })),
    settings,
  };
}

function message(written: WrittenMessage, source: number): Message {
  const { role, content } = written;
  switch (role) {
    case "system":
    case "user":
      return { role, content, source };
    case "tool":
      return { role, content, toolCallId: written.tool_call_id ?? assert.fail("a result names its call"), source };
    default: {
      const toolCalls = (written.tool_calls ?? []).map(({ id, function: { name, arguments: args } }): ToolCall => ({
        id,
        name,
        arguments: args,
      }));
      return { role: "assistant", content, reasoning: written.reasoning_content ?? null, toolCalls, form: "", source };
    }
  }
}
