/**
 * Canonical messages in the form that chat templates read, which is OpenAI's chat form with parsed arguments. Everything a
 * message says is foreign text. It knows neither the template nor tokens.
 */

import { VerbatimError } from "../core/errors.ts";
import {
  type AssistantMessage,
  type Content,
  type Message,
  textOf,
  type ToolCall,
  type ToolDefinition,
} from "../core/message.ts";
import { fromJson, readJsonObject } from "./jinja/from_json.ts";
import { foreign, said } from "./jinja/text.ts";
import { Dict, type Value } from "./jinja/values.ts";

/** How a template wants calls: most read arguments as an object, some add them to text; some want no content beside them. */
export interface CallForm {
  readonly argumentsAs: "object" | "text";
  /** What stands for the content of a message that has calls and no text. */
  readonly noContentAs: "empty" | "none";
}

/** The names by which templates know a message's reasoning, the commonest first. */
export const REASONING_KEYS = ["reasoning_content", "reasoning", "thinking"] as const;
export type ReasoningKey = typeof REASONING_KEYS[number];

export interface TemplateMessageOptions {
  readonly callForm: CallForm;
  /** Whether the template reads a list of parts; else parts are joined to text. */
  readonly takesParts: boolean;
  /** The key under which the template reads reasoning. Default `reasoning_content`. */
  readonly reasoningAs?: ReasoningKey;
  /** Calls made before the first message, which its tool results may answer. */
  readonly earlierCalls?: readonly Pick<ToolCall, "id" | "name">[] | undefined;
}

/** The messages for a template; a key that a message does not have is not defined. Images are `unsupported`. */
export function toTemplateMessages(messages: readonly Message[], options: TemplateMessageOptions): Dict[] {
  const names = new Map<string, string>();
  for (const call of options.earlierCalls ?? []) names.set(call.id, call.name);
  return messages.map((message) => {
    const entries = new Map<string, Value>([["role", message.role]]);
    switch (message.role) {
      case "system":
      case "user":
        entries.set("content", contentOf(message.content, options.takesParts, message.source));
        break;
      case "assistant":
        entries.set("content", assistantContent(message, options.callForm));
        if (message.reasoning !== null) {
          entries.set(options.reasoningAs ?? "reasoning_content", said(message.reasoning));
        }
        if (message.toolCalls.length > 0) {
          entries.set(
            "tool_calls",
            message.toolCalls.map((call) => templateCall(call, options.callForm)),
          );
        }
        for (const call of message.toolCalls) names.set(call.id, call.name);
        break;
      case "tool": {
        entries.set("content", contentOf(message.content, options.takesParts, message.source));
        entries.set("tool_call_id", foreign(message.toolCallId));
        const name = names.get(message.toolCallId);
        if (name !== undefined) entries.set("name", foreign(name));
      }
    }
    return new Dict(entries);
  });
}

/** The tools in OpenAI's form, keys in the order they were written; None where there are none, as in `transformers`. */
export function toTemplateTools(tools: readonly ToolDefinition[]): Value {
  if (tools.length === 0) return null;
  return tools.map((tool) =>
    new Dict(new Map<string, Value>([["type", "function"], ["function", templateFunction(tool)]]))
  );
}

function templateFunction(tool: ToolDefinition): Value {
  if ("name" in tool.raw) return fromJson({ ...tool.raw });
  return fromJson({
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...(tool.parameters === undefined ? {} : { parameters: tool.parameters }),
    ...tool.raw,
  });
}

function contentOf(content: Content, takesParts: boolean, source: number): Value {
  if (typeof content === "string") return foreign(content);
  if (content.some((part) => part.type === "image")) {
    throw new VerbatimError("unsupported", `Message ${source} carries an image; only text can be rendered.`, {
      details: { field: `messages.${source}.content`, reason: "image" },
    });
  }
  if (!takesParts) return foreign(textOf(content));
  return content.map((part) =>
    new Dict(new Map<string, Value>([["type", "text"], ["text", foreign(part.type === "text" ? part.text : "")]]))
  );
}

function assistantContent(message: AssistantMessage, form: CallForm): Value {
  const isNone = form.noContentAs === "none" && message.content === "" && message.toolCalls.length > 0;
  return isNone ? null : said(message.content);
}

/** Arguments that are a JSON object are given as one where the template reads objects, anything else as the text it is. */
function templateCall(call: ToolCall, form: CallForm): Dict {
  const name = foreign(call.name);
  const text = foreign(call.arguments);
  const given = form.argumentsAs === "text" ? text : readJsonObject(call.arguments) ?? text;
  return new Dict(
    new Map<string, Value>([
      ["id", foreign(call.id)],
      ["type", "function"],
      ["function", new Dict(new Map<string, Value>([["name", name], ["arguments", given]]))],
    ]),
  );
}
