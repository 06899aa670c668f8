/**
 * Canonical messages in the form that chat templates read, which is OpenAI's chat form with parsed arguments. It knows
 * neither the template nor tokens.
 */

import { VerbatimError } from "../core/errors.ts";
import { type Content, type Json, type Message, textOf, type ToolCall, type ToolDefinition } from "../core/message.ts";

/** A message as templates see it; a key that is not defined is absent. */
export type TemplateMessage = { readonly [key: string]: Json };

export interface TemplateMessageOptions {
  /** Whether the template reads a list of parts; else parts are joined to text. */
  readonly takesParts: boolean;
  /** Calls made before the first message, which its tool results may answer. */
  readonly earlierCalls?: readonly Pick<ToolCall, "id" | "name">[];
}

/** The messages for a template. Images are `unsupported`. */
export function toTemplateMessages(
  messages: readonly Message[],
  options: TemplateMessageOptions,
): TemplateMessage[] {
  const names = new Map<string, string>();
  for (const call of options.earlierCalls ?? []) names.set(call.id, call.name);
  return messages.map((message) => {
    switch (message.role) {
      case "system":
      case "user":
        return { role: message.role, content: contentOf(message.content, options.takesParts, message.source) };
      case "assistant": {
        for (const call of message.toolCalls) names.set(call.id, call.name);
        return {
          role: "assistant",
          content: message.content,
          ...(message.reasoning === null ? {} : { reasoning_content: message.reasoning }),
          ...(message.toolCalls.length === 0 ? {} : { tool_calls: message.toolCalls.map(templateCall) }),
        };
      }
      case "tool": {
        const name = names.get(message.toolCallId);
        return {
          role: "tool",
          content: contentOf(message.content, options.takesParts, message.source),
          tool_call_id: message.toolCallId,
          ...(name === undefined ? {} : { name }),
        };
      }
    }
  });
}

/** The tools in OpenAI's form, keys in the order they were written; null where there are none, as in `transformers`. */
export function toTemplateTools(tools: readonly ToolDefinition[]): Json {
  if (tools.length === 0) return null;
  return tools.map((tool) => ({ type: "function", function: templateFunction(tool) }));
}

function templateFunction(tool: ToolDefinition): { [key: string]: Json } {
  if ("name" in tool.raw) return { ...tool.raw };
  return {
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...(tool.parameters === undefined ? {} : { parameters: tool.parameters }),
    ...tool.raw,
  };
}

function contentOf(content: Content, takesParts: boolean, source: number): Json {
  if (typeof content === "string") return content;
  if (content.some((part) => part.type === "image")) {
    throw new VerbatimError("unsupported", `Message ${source} carries an image; only text can be rendered.`, {
      details: { field: `messages.${source}.content`, reason: "image" },
    });
  }
  if (!takesParts) return textOf(content);
  return content.map((part) => ({ type: "text", text: part.type === "text" ? part.text : "" }));
}

/** Arguments that are a JSON object are given as one, anything else as the text it is. */
function templateCall(call: ToolCall): Json {
  return { id: call.id, type: "function", function: { name: call.name, arguments: argumentsOf(call.arguments) } };
}

function argumentsOf(text: string): Json {
  try {
    const value: Json = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : text;
  } catch {
    return text;
  }
}
