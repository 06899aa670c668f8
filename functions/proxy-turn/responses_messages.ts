/**
 * Responses input items to canonical messages. Items of one reply are one assistant message. It resolves references to
 * served items through a function it is given, and keeps nothing.
 */

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
  type JsonObject,
  unsupported,
} from "./read_json.ts";
import { readFunctionTools } from "./read_tools.ts";
import { readEncryptedContent } from "./response_ids.ts";

/** The parts of a request that are rendered, unread. */
export interface ResponsesConversation {
  /** A string, or the list of items. */
  readonly input: unknown;
  /** System text before everything else. */
  readonly instructions?: unknown;
  /** The tools offered. */
  readonly tools?: unknown;
  /** Template settings. */
  readonly chat_template_kwargs?: unknown;
}

/** An item of a served reply, as an `item_reference` stands for it. */
export type ServedItem =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "function_call"; readonly call: ToolCall };

/** A conversation, and the tools that no model here can call (`tools.3`): they are not offered. */
export interface ReadConversation {
  /** What is rendered. */
  readonly conversation: Conversation;
  /** Fields that were accepted and do nothing. */
  readonly ignoredFields: readonly string[];
}

/**
 * Reads a conversation. `resolve` gives the served item of an id, or null; a reference to no item is `invalid_request`.
 * `before`: the messages it goes on from, which count as if the input had begun with them.
 */
export function readResponsesConversation(
  request: ResponsesConversation,
  resolve: (id: string) => ServedItem | null,
  options: { readonly before?: readonly Message[] } = {},
): ReadConversation {
  const before = options.before ?? [];
  const firstSource = (before.at(-1)?.source ?? -1) + 1;
  const instructions = asOptionalText(request.instructions, "instructions");
  const items = typeof request.input === "string"
    ? [{ role: "user", content: request.input }]
    : asList(request.input, "input");
  const reader = new ItemReader(resolve);
  items.forEach((item, k) => reader.read(item, firstSource + k, `input.${k}`));
  const { tools, ignoredFields } = readFunctionTools(request.tools);
  return {
    conversation: {
      messages: [
        ...(instructions === "" ? [] : [{ role: "system", content: instructions, source: -1 } as const]),
        ...before,
        ...reader.finish(),
      ],
      tools,
      settings: asJsonObject(request.chat_template_kwargs, "chat_template_kwargs"),
    },
    ignoredFields,
  };
}

/** The `form` of a reply as this dialect serves it: a message of one text part where there is text or no call, then the calls. */
export function responsesServedForm(reply: Pick<AssistantMessage, "content" | "toolCalls">): string {
  const text = reply.content === "" && reply.toolCalls.length > 0
    ? []
    : [messageLine([{ type: "text", text: reply.content }])];
  return [...text, ...reply.toolCalls.map(callLine)].join("\n");
}

function messageLine(content: Content): string {
  return formLine("message", typeof content === "string" ? content : content.map((part) => ({ text: textOf([part]) })));
}

function callLine(call: ToolCall): string {
  return formLine("call", call.arguments);
}

const REFERENCE_LINE = formLine("reference");

/** Puts items together as they come. A reply is reasoning, then text, then calls; what comes out of that order starts a new one. */
class ItemReader {
  readonly #resolve: (id: string) => ServedItem | null;
  readonly #messages: Message[] = [];
  #reply: OpenReply | null = null;

  constructor(resolve: (id: string) => ServedItem | null) {
    this.#resolve = resolve;
  }

  read(written: unknown, source: number, field: string): void {
    const item = asObject(written, field);
    const type = item.type ?? (item.role === undefined ? "item_reference" : "message");
    switch (type) {
      case "message":
        return this.#message(item, field, source);
      case "reasoning":
        return this.#reasoningItem(item, field, source);
      case "function_call":
        return this.#call(readCall(item, field), source, null);
      case "function_call_output":
        return this.#push({
          role: "tool",
          toolCallId: asOptionalText(item.call_id, `${field}.call_id`),
          content: readContent(item.output, `${field}.output`),
          source,
        });
      case "item_reference":
        return this.#reference(asText(item.id, `${field}.id`), field, source);
      default:
        throw unsupported(`${field}.type`, `items of type ${JSON.stringify(type)} are not supported`);
    }
  }

  finish(): Message[] {
    this.#close();
    return this.#messages;
  }

  #message(item: JsonObject, field: string, source: number): void {
    const content = readContent(item.content, `${field}.content`);
    switch (item.role) {
      case "assistant":
        if (typeof content !== "string" && content.some((part) => part.type === "image")) {
          throw unsupported(`${field}.content`, "an assistant message can't hold images");
        }
        return this.#text(textOf(content), source, messageLine(content));
      case "system":
      case "developer":
        return this.#push({ role: "system", content, source });
      case "user":
        return this.#push({ role: "user", content, source });
      default:
        throw invalid(
          `${field}.role`,
          `must be system, developer, user or assistant, not ${JSON.stringify(item.role)}`,
        );
    }
  }

  #reference(id: string, field: string, source: number): void {
    const served = this.#resolve(id);
    switch (served?.type) {
      case undefined:
        throw invalid(`${field}.id`, `no item ${JSON.stringify(id)} was served to this task`);
      case "reasoning":
        this.#reasoning(served!.text, source);
        if (this.#reply !== null) this.#reply.referenced = true;
        return;
      case "message":
        return this.#text(served!.text, source, REFERENCE_LINE);
      case "function_call":
        return this.#call(served!.call, source, REFERENCE_LINE);
    }
  }

  /** Where an item holds no text, what its encrypted content stands for. */
  #reasoningItem(item: JsonObject, field: string, source: number): void {
    const text = reasoningText(item, field);
    const encrypted = asOptionalText(item.encrypted_content, `${field}.encrypted_content`);
    const id = text === "" ? readEncryptedContent(encrypted) : null;
    const served = id === null ? null : this.#resolve(id);
    if (served?.type !== "reasoning") return this.#reasoning(text, source);
    this.#reasoning(served.text, source);
    if (this.#reply !== null) this.#reply.referenced = true;
  }

  #push(message: Message): void {
    this.#close();
    this.#messages.push(message);
  }

  #reasoning(text: string, source: number): void {
    if (this.#reply !== null && this.#reply.lines.length > 0) this.#close();
    this.#reply ??= openReply(source);
    this.#reply.reasoning.push(text);
  }

  #text(text: string, source: number, line: string): void {
    if (this.#reply !== null && this.#reply.lines.length > 0) this.#close();
    const reply = this.#written(source, line);
    reply.content = text;
  }

  #call(call: ToolCall, source: number, line: string | null): void {
    this.#written(source, line ?? callLine(call)).toolCalls.push(call);
  }

  /** The reply under way, which an item of its own belongs to; reasoning items have no place in it. */
  #written(source: number, line: string): OpenReply {
    const reply = this.#reply ??= openReply(source);
    if (reply.lines.length === 0) reply.source = source;
    reply.lines.push(line);
    return reply;
  }

  #close(): void {
    const reply = this.#reply;
    this.#reply = null;
    if (reply === null) return;
    this.#messages.push({
      role: "assistant",
      content: reply.content,
      reasoning: reply.reasoning.length === 0 ? null : reply.reasoning.join(""),
      ...(reply.referenced ? { reasoningPlace: "referenced" as const } : {}),
      toolCalls: reply.toolCalls,
      form: reply.lines.join("\n"),
      source: reply.source,
    });
  }
}

interface OpenReply {
  content: string;
  readonly reasoning: string[];
  referenced: boolean;
  readonly toolCalls: ToolCall[];
  readonly lines: string[];
  source: number;
}

function openReply(source: number): OpenReply {
  return { content: "", reasoning: [], referenced: false, toolCalls: [], lines: [], source };
}

function readCall(item: JsonObject, field: string): ToolCall {
  return {
    id: asOptionalText(item.call_id, `${field}.call_id`),
    name: asText(item.name, `${field}.name`),
    arguments: asArguments(item.arguments, `${field}.arguments`),
  };
}

/** The text of a reasoning item: its content where it has one, else its summary. */
function reasoningText(item: JsonObject, field: string): string {
  const texts = (parts: unknown, at: string) =>
    asList(parts, at).map((part, k) => asText(asObject(part, `${at}.${k}`).text, `${at}.${k}.text`));
  const content = texts(item.content, `${field}.content`);
  return (content.length > 0 ? content : texts(item.summary, `${field}.summary`)).join("");
}

function readContent(content: unknown, field: string): Content {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  return asList(content, field).map((part, k) => readPart(part, `${field}.${k}`));
}

function readPart(written: unknown, field: string): ContentPart {
  const part = asObject(written, field);
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: asOptionalText(part.text, `${field}.text`) };
    case "refusal":
      return { type: "text", text: asOptionalText(part.refusal, `${field}.refusal`) };
    case "input_image":
      return imagePart(asText(part.image_url, `${field}.image_url`));
    default:
      throw unsupported(`${field}.type`, `only text and images are supported, not ${JSON.stringify(part.type)}`);
  }
}
