/** Chat completions to canonical messages. Loose where clients differ; what cannot be read is refused, never dropped. */

import type {
  AssistantMessage,
  Content,
  ContentPart,
  Conversation,
  Message,
  ToolCall,
} from "../../shared/core/message.ts";
import { textOf } from "../../shared/core/message.ts";
import {
  asArguments,
  asJsonObject,
  asList,
  asObject,
  asOptionalText,
  asText,
  formLine,
  imagePart,
  invalid,
  isObject,
  type JsonObject,
  unsupported,
} from "./read_json.ts";
import { rememberReading } from "./remember_reading.ts";
import { readTools } from "./read_tools.ts";

/** The parts of a request that are rendered, unread. */
export interface ChatConversation {
  /** The list of messages. */
  readonly messages: unknown;
  /** The tools offered. */
  readonly tools?: unknown;
  /** Template settings. */
  readonly chat_template_kwargs?: unknown;
}

/** Reads a conversation. Malformed shapes are `invalid_request`, kinds of content no model here reads are `unsupported`. */
export function readChatConversation(request: ChatConversation): Conversation {
  return {
    messages: asList(request.messages, "messages").map(readKnownMessage),
    tools: readTools(request.tools),
    settings: asJsonObject(request.chat_template_kwargs, "chat_template_kwargs"),
  };
}

/** The `form` of a reply as this dialect serves it: text is a string; beside calls, no text is null. */
export function chatServedForm(reply: Pick<AssistantMessage, "content" | "toolCalls">): string {
  const { content, toolCalls } = reply;
  return chatForm(content === "" && toolCalls.length > 0 ? null : content, toolCalls);
}

/** How a message is written: the container of its text, and the argument strings. */
function chatForm(container: unknown, calls: readonly ToolCall[]): string {
  return formLine("chat", container, calls.map((call) => call.arguments));
}

const readKnownMessage = rememberReading(readMessage);

function readMessage(item: unknown, source: number): Message {
  const field = `messages.${source}`;
  const message = asObject(item, field);
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", content: readContent(message.content, `${field}.content`), source };
    case "user":
      return { role: "user", content: readContent(message.content, `${field}.content`), source };
    case "assistant":
      return readAssistant(message, field, source);
    case "tool":
      return {
        role: "tool",
        toolCallId: asOptionalText(message.tool_call_id, `${field}.tool_call_id`),
        content: readContent(message.content, `${field}.content`),
        source,
      };
    case "function":
      // Before there were call ids, results named the function only; they answer the calls in turn.
      return { role: "tool", toolCallId: "", content: readContent(message.content, `${field}.content`), source };
    default:
      throw invalid(
        `${field}.role`,
        `must be system, developer, user, assistant or tool, not ${JSON.stringify(message.role)}`,
      );
  }
}

function readContent(content: unknown, field: string): Content {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  return asList(content, field).map((part, k) => readPart(part, `${field}.${k}`));
}

function readPart(item: unknown, field: string): ContentPart {
  if (typeof item === "string") return { type: "text", text: item };
  const part = asObject(item, field);
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      return { type: "text", text: asOptionalText(part.text, `${field}.text`) };
    case "refusal":
      return { type: "text", text: asOptionalText(part.refusal, `${field}.refusal`) };
    case "image_url": {
      const image = part.image_url;
      return imagePart(
        typeof image === "string" ? image : asText(asObject(image, `${field}.image_url`).url, `${field}.image_url.url`),
      );
    }
    default:
      throw unsupported(`${field}.type`, `only text and image_url are supported, not ${JSON.stringify(part.type)}`);
  }
}

function readAssistant(message: JsonObject, field: string, source: number): AssistantMessage {
  const content = readContent(message.content, `${field}.content`);
  if (typeof content !== "string" && content.some((part) => part.type === "image")) {
    throw unsupported(`${field}.content`, "an assistant message can't hold images");
  }
  const toolCalls = readCalls(message, field);
  const reasoning = message.reasoning_content ?? message.reasoning ?? null;
  return {
    role: "assistant",
    content: textOf(content),
    reasoning: reasoning === null ? null : asText(reasoning, `${field}.reasoning_content`),
    ...(reasoning === null && hasNestedReasoning(message.content) ? { reasoningPlace: "nested" as const } : {}),
    toolCalls,
    form: chatForm(containerOf(message.content, content), toolCalls),
    source,
  };
}

/** The text in its container, without what a part carries beside its text. */
function containerOf(written: unknown, content: Content): unknown {
  if (written === undefined) return ["missing"];
  return written === null
    ? null
    : typeof content === "string"
    ? content
    : content.map((part) => ({ text: textOf([part]) }));
}

/** Some clients put the whole served message into a text part once more. */
function hasNestedReasoning(content: unknown): boolean {
  return Array.isArray(content) &&
    content.some((part) => isObject(part) && typeof part.reasoning_content === "string");
}

function readCalls(message: JsonObject, field: string): ToolCall[] {
  const calls = asList(message.tool_calls, `${field}.tool_calls`).map((item, k): ToolCall => {
    const at = `${field}.tool_calls.${k}`;
    const call = asObject(item, at);
    const type = call.type ?? "function";
    if (type !== "function") {
      throw unsupported(`${at}.type`, `only "function" is supported, not ${JSON.stringify(type)}`);
    }
    return readFunction(call.function, asOptionalText(call.id, `${at}.id`), `${at}.function`);
  });
  const legacy = message.function_call ?? null;
  return legacy === null ? calls : [...calls, readFunction(legacy, "", `${field}.function_call`)];
}

function readFunction(item: unknown, id: string, field: string): ToolCall {
  const called = asObject(item, field);
  return {
    id,
    name: asText(called.name, `${field}.name`),
    arguments: asArguments(called.arguments, `${field}.arguments`),
  };
}
