/** The echo vectors as data, and their dialects: what a request and a served reply are in canonical form. */

import type { AssistantMessage, Conversation } from "../../shared/core/message.ts";
import { anthropicServedForm, readAnthropicConversation } from "../../functions/proxy-turn/anthropic_messages.ts";
import { chatServedForm, readChatConversation } from "../../functions/proxy-turn/chat_messages.ts";
import {
  readResponsesConversation,
  responsesServedForm,
  type ServedItem,
} from "../../functions/proxy-turn/responses_messages.ts";

/** What a request got. */
export interface VectorReply {
  readonly text: string | null;
  readonly reasoning: string | null;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}

/** The verdict on one request, as the vectors state it. */
export interface VectorExpectation {
  readonly relation: string;
  readonly parent: number | null;
  readonly echo: string | null;
  readonly echo_also?: readonly string[];
  readonly append_only: string;
  readonly strict_echo?: string;
  readonly on_arrival?: string;
  readonly on_arrival_strict?: string;
  readonly tools?: string;
  readonly reasoning?: string;
}

/** One sequence of requests. */
export interface EchoVector {
  readonly id: string;
  readonly dialect: "chat" | "responses" | "messages";
  readonly requests: readonly { readonly body: { readonly [key: string]: unknown } }[];
  readonly served: readonly { readonly reply: VectorReply | null; readonly raw: unknown }[];
  readonly expect: readonly VectorExpectation[];
}

const FOLDER = new URL("../fixtures/vectors/echo/", import.meta.url);

/** All vectors, in the order of their files. */
export function readEchoVectors(): EchoVector[] {
  const names = [...Deno.readDirSync(FOLDER)].map((entry) => entry.name).filter((name) => name.endsWith(".json"))
    .sort();
  return names.flatMap((name): EchoVector[] => JSON.parse(Deno.readTextFileSync(new URL(name, FOLDER))).vectors);
}

/** The conversation of a request. */
export function conversationOf(vector: EchoVector, request: number): Conversation {
  const body = vector.requests[request]!.body;
  switch (vector.dialect) {
    case "chat":
      return readChatConversation({ messages: body.messages, tools: body.tools });
    case "responses": {
      const served = new Map(vector.served.slice(0, request).flatMap(({ raw }) => itemsOf(raw)));
      return readResponsesConversation(
        { input: body.input, instructions: body.instructions, tools: body.tools },
        (id) => served.get(id) ?? null,
      ).conversation;
    }
    case "messages":
      return readAnthropicConversation({ messages: body.messages, system: body.system, tools: body.tools })
        .conversation;
  }
}

/** A served reply in canonical form. */
export function assistantOf(vector: EchoVector, reply: VectorReply): AssistantMessage {
  const message = { content: reply.text ?? "", toolCalls: [...reply.calls] };
  const form = { chat: chatServedForm, responses: responsesServedForm, messages: anthropicServedForm }[vector.dialect];
  return { role: "assistant", ...message, reasoning: reply.reasoning, form: form(message), source: -1 };
}

interface RawItem {
  readonly id: string;
  readonly type: string;
  readonly content?: readonly { readonly text: string }[];
  readonly call_id?: string;
  readonly name?: string;
  readonly arguments?: string;
}

/** The items of a reply as served, by id. */
function itemsOf(raw: unknown): [string, ServedItem][] {
  const events: readonly { readonly type?: string; readonly item?: RawItem; readonly output?: readonly RawItem[] }[] =
    JSON.parse(JSON.stringify(Array.isArray(raw) ? raw : [raw]));
  const items = events.flatMap((event) =>
    event.type === "response.output_item.done" && event.item !== undefined ? [event.item] : event.output ?? []
  );
  return items.map((item): [string, ServedItem] => {
    const text = (item.content ?? []).map((part) => part.text).join("");
    if (item.type !== "function_call") {
      return [item.id, { type: item.type === "message" ? "message" : "reasoning", text }];
    }
    const call = { id: item.call_id ?? "", name: item.name ?? "", arguments: item.arguments ?? "" };
    return [item.id, { type: "function_call", call }];
  });
}
