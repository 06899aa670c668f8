/** Canonical messages and tools in the words of OpenAI's chat completions. It sends nothing. */

import type {
  ChatCompletionContentPart,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
} from "openai/resources";
import { type Content, type Message, textOf, type ToolDefinition } from "../../core/message.ts";

/** One message. Reasoning of earlier replies is left out: chat APIs take none back. */
export function chatMessage(message: Message): ChatCompletionMessageParam {
  switch (message.role) {
    case "system":
      return { role: "system", content: textOf(message.content) };
    case "user":
      return { role: "user", content: userContent(message.content) };
    case "assistant":
      return {
        role: "assistant",
        content: message.content === "" && message.toolCalls.length > 0 ? null : message.content,
        ...(message.toolCalls.length === 0 ? {} : {
          tool_calls: message.toolCalls.map((call) => ({
            id: call.id,
            type: "function" as const,
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
      };
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: textOf(message.content) };
  }
}

/** One tool, with whatever else stood in its definition. */
export function chatTool(tool: ToolDefinition): ChatCompletionFunctionTool {
  const { raw, name, description, parameters } = tool;
  return {
    type: "function",
    function: {
      ...raw,
      name,
      ...(description === undefined ? {} : { description }),
      ...(isRecord(parameters) ? { parameters } : {}),
    },
  };
}

function userContent(content: Content): string | ChatCompletionContentPart[] {
  if (typeof content === "string") return content;
  return content.map((part) =>
    part.type === "text" ? { type: "text", text: part.text } : { type: "image_url", image_url: { url: part.url } }
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
