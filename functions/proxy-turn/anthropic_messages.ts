/** Anthropic messages to canonical ones. Tool results are messages of their own; the rest of their user message follows. */

import type {
  AssistantMessage,
  Content,
  ContentPart,
  Message,
  ToolCall,
  ToolMessage,
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
  type JsonObject,
  unsupported,
} from "./read_json.ts";
import { rememberReading } from "./remember_reading.ts";
import { readAnthropicTools } from "./read_tools.ts";
import type { ReadConversation } from "./responses_messages.ts";
import { spelledArguments } from "./spelled_arguments.ts";

/** The parts of a request that are rendered, unread. */
export interface AnthropicConversation {
  /** The list of messages. */
  readonly messages: unknown;
  /** System text: a string, or text blocks. */
  readonly system?: unknown;
  /** The tools offered. */
  readonly tools?: unknown;
  /** Template settings. */
  readonly chat_template_kwargs?: unknown;
}

/** Starts a system block that changes with every request and is no part of the history. */
const NONCE_BLOCK = "x-anthropic-billing-header:";

/** Reads a conversation. Malformed shapes are `invalid_request`, kinds of content no model here reads are `unsupported`. */
export function readAnthropicConversation(request: AnthropicConversation): ReadConversation {
  const system = readSystem(request.system);
  const { tools, ignoredFields } = readAnthropicTools(request.tools);
  return {
    conversation: {
      messages: [
        ...(textOf(system) === "" ? [] : [{ role: "system", content: system, source: -1 } as const]),
        ...asList(request.messages, "messages").flatMap(readKnownMessage),
      ],
      tools,
      settings: asJsonObject(request.chat_template_kwargs, "chat_template_kwargs"),
    },
    ignoredFields,
  };
}

/** The `form` of a reply as this dialect serves it: a text block where there is text, then the calls. */
export function anthropicServedForm(reply: Pick<AssistantMessage, "content" | "toolCalls">): string {
  const text = reply.content === "" ? [] : [textLine(reply.content)];
  return [...text, ...reply.toolCalls.map(callLine)].join("\n");
}

function textLine(text: string): string {
  return formLine("text", text);
}

/** Arguments are values here: key order and number literals count, white space and escapes do not. */
function callLine(call: ToolCall): string {
  return formLine("tool_use", spelledArguments(call.arguments));
}

function readSystem(system: unknown): Content {
  if (typeof system === "string") return system;
  return asList(system, "system").flatMap((written, k): ContentPart[] => {
    const part = readPart(written, `system.${k}`);
    return part.type === "text" && part.text.startsWith(NONCE_BLOCK) ? [] : [part];
  });
}

const readKnownMessage = rememberReading(readMessage);

function readMessage(written: unknown, source: number): Message[] {
  const field = `messages.${source}`;
  const message = asObject(written, field);
  switch (message.role) {
    case "user":
      return readUser(message, field, source);
    case "assistant":
      return [readAssistant(message, field, source)];
    case "system":
      return [{ role: "system", content: readContent(message.content, `${field}.content`), source }];
    default:
      throw invalid(`${field}.role`, `must be user, assistant or system, not ${JSON.stringify(message.role)}`);
  }
}

function readUser(message: JsonObject, field: string, source: number): Message[] {
  if (!Array.isArray(message.content)) {
    return [{ role: "user", content: readContent(message.content, `${field}.content`), source }];
  }
  const results: ToolMessage[] = [];
  const rest: ContentPart[] = [];
  for (const [k, written] of message.content.entries()) {
    const at = `${field}.content.${k}`;
    const block = asObject(written, at);
    if (block.type !== "tool_result") {
      rest.push(readPart(block, at));
      continue;
    }
    results.push({
      role: "tool",
      toolCallId: asOptionalText(block.tool_use_id, `${at}.tool_use_id`),
      content: readContent(block.content, `${at}.content`),
      source,
    });
  }
  const isEmpty = rest.every((part) => part.type === "text" && part.text === "");
  return results.length > 0 && isEmpty ? results : [...results, { role: "user", content: rest, source }];
}

function readAssistant(message: JsonObject, field: string, source: number): AssistantMessage {
  const { content } = message;
  if (!Array.isArray(content)) {
    const text = asOptionalText(content, `${field}.content`);
    return { role: "assistant", content: text, reasoning: null, toolCalls: [], form: formLine("string", text), source };
  }
  let text = "";
  const reasoning: string[] = [];
  const toolCalls: ToolCall[] = [];
  const lines: string[] = [];
  for (const [k, written] of content.entries()) {
    const at = `${field}.content.${k}`;
    const block = asObject(written, at);
    switch (block.type) {
      case "text": {
        const own = asOptionalText(block.text, `${at}.text`);
        text += own;
        lines.push(textLine(own));
        break;
      }
      case "thinking":
        reasoning.push(asOptionalText(block.thinking, `${at}.thinking`));
        // Whose signature it is does not matter: the series keeps what was sampled, whatever comes back.
        asOptionalText(block.signature, `${at}.signature`);
        break;
      case "redacted_thinking":
        break;
      case "tool_use": {
        const call = {
          id: asOptionalText(block.id, `${at}.id`),
          name: asText(block.name, `${at}.name`),
          arguments: asArguments(block.input, `${at}.input`),
        };
        toolCalls.push(call);
        lines.push(callLine(call));
        break;
      }
      default:
        throw unsupported(
          `${at}.type`,
          `blocks of type ${JSON.stringify(block.type)} are not supported in an assistant message`,
        );
    }
  }
  return {
    role: "assistant",
    content: text,
    reasoning: reasoning.length === 0 ? null : reasoning.join(""),
    toolCalls,
    form: lines.join("\n"),
    source,
  };
}

function readContent(content: unknown, field: string): Content {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  return asList(content, field).map((part, k) => readPart(part, `${field}.${k}`));
}

function readPart(written: unknown, field: string): ContentPart {
  const block = asObject(written, field);
  switch (block.type) {
    case "text":
      return { type: "text", text: asOptionalText(block.text, `${field}.text`) };
    case "image":
      return readImage(asObject(block.source, `${field}.source`), `${field}.source`);
    default:
      throw unsupported(`${field}.type`, `only text and images are supported here, not ${JSON.stringify(block.type)}`);
  }
}

function readImage(image: JsonObject, field: string): ContentPart {
  switch (image.type) {
    case "base64":
      return imagePart(
        `data:${asText(image.media_type, `${field}.media_type`)};base64,${asText(image.data, `${field}.data`)}`,
      );
    case "url":
      return imagePart(asText(image.url, `${field}.url`));
    default:
      throw unsupported(`${field}.type`, `only base64 and url are supported, not ${JSON.stringify(image.type)}`);
  }
}
