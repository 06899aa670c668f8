/**
 * OpenAI Responses: the answer's stream. Items come in the order of the body: reasoning, message, calls. Reasoning and
 * text flow as they are sampled; calls come after the text, since more text may follow a call.
 */

import type { VerbatimError } from "../../shared/core/errors.ts";
import type { ToolCall } from "../../shared/core/message.ts";
import type { Answer, AnswerDelta, CallEvent } from "../../shared/services/turns/shared_call.ts";
import { namedFrame } from "./named_frame.ts";
import { openaiErrorBody } from "./openai_errors.ts";
import { itemId, type ItemKind } from "./response_ids.ts";
import {
  callItem,
  endOf,
  isMessageServed,
  type ItemStatus,
  messageItem,
  type OutputItem,
  reasoningItem,
  reasoningPart,
  responseObject,
  type ResponseView,
  textPart,
  usageOf,
} from "./responses_answer.ts";

type Started = Extract<CallEvent, { type: "started" }>;

/** An item that is being said. */
interface OpenItem {
  readonly kind: "reasoning" | "message";
  readonly id: string;
  text: string;
}

/** Writes one answer's stream: numbers its events, and says what failed in the answer's own words. */
export class ResponseFrames {
  readonly #view: ResponseView;
  #sequence = 0;
  #started: Started | null = null;
  #open: OpenItem | null = null;
  readonly #done: OutputItem[] = [];
  /** Reasoning that came after the message began: an item of its own after the message. */
  #late = "";

  constructor(view: ResponseView) {
    this.#view = view;
  }

  /** The stream; to be called once. */
  async *of(events: AsyncIterable<CallEvent>): AsyncGenerator<string> {
    for await (const event of events) {
      switch (event.type) {
        case "started":
          this.#started = event;
          yield this.#stateFrame("response.created", { status: "in_progress" });
          yield this.#stateFrame("response.in_progress", { status: "in_progress" });
          break;
        case "tokens":
          break;
        case "delta":
          yield* this.#delta(event.delta);
          break;
        case "end":
          yield* this.#end(event.answer);
      }
    }
  }

  /** The frame that ends a stream that failed. */
  failure(error: VerbatimError): string {
    const { code, message } = error;
    if (this.#started === null) {
      return this.#frame("error", { code, message, param: null, error: openaiErrorBody(error).error });
    }
    const listed = code === "busy" || code === "budget_exceeded" ? "rate_limit_exceeded" : "server_error";
    return this.#stateFrame("response.failed", { status: "failed", error: { code: listed, message } });
  }

  *#delta(delta: AnswerDelta): Generator<string> {
    switch (delta.type) {
      case "reasoning":
        if (this.#open?.kind === "message") this.#late += delta.text;
        else yield* this.#say("reasoning", delta.text);
        break;
      case "content":
        yield* this.#say("message", delta.text);
        break;
      case "tool_call":
        break;
    }
  }

  *#end(answer: Answer): Generator<string> {
    const { reply } = answer;
    const lastStatus = answer.finishReason === "length" ? "incomplete" : "completed";
    const isCutInReasoning = reply.content === "" && reply.toolCalls.length === 0 && reply.reasoning !== null;
    if (isMessageServed(reply) && this.#open?.kind !== "message") {
      yield* this.#close(isCutInReasoning ? lastStatus : "completed");
      yield* this.#say("message", "");
    }
    yield* this.#close(isCutInReasoning ? "completed" : lastStatus);
    if (this.#late !== "") {
      yield* this.#say("reasoning", this.#late);
      yield* this.#close("completed");
    }
    for (const [index, call] of reply.toolCalls.entries()) yield* this.#call(call, index);
    const type = answer.finishReason === "length" ? "response.incomplete" : "response.completed";
    const state = { ...endOf(answer), usage: usageOf(answer) };
    yield this.#stateFrame(type, state, { verbatim: { turn: answer.turn } });
  }

  /** Opens an item where it is not open, and says more of it. */
  *#say(kind: OpenItem["kind"], text: string): Generator<string> {
    if (this.#open?.kind !== kind) {
      yield* this.#close("completed");
      this.#open = { kind, id: this.#itemId(kind), text: "" };
      yield* this.#added(this.#open);
    }
    const item = this.#open;
    item.text += text;
    if (text !== "") yield this.#itemFrame(`${this.#textEvent(kind)}.delta`, item.id, { delta: text });
  }

  *#added({ kind, id }: OpenItem): Generator<string> {
    yield this.#frame("response.output_item.added", {
      output_index: this.#done.length,
      item: this.#item(kind, id, { text: null, status: "in_progress" }),
    });
    yield this.#itemFrame(`${this.#partEvent(kind)}.added`, id, { part: this.#part(kind, "") });
  }

  *#close(status: ItemStatus): Generator<string> {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    const { kind, id, text } = open;
    yield this.#itemFrame(`${this.#textEvent(kind)}.done`, id, { text });
    yield this.#itemFrame(`${this.#partEvent(kind)}.done`, id, { part: this.#part(kind, text) });
    yield this.#itemDone(this.#item(kind, id, { text, status }));
  }

  *#call(call: ToolCall, index: number): Generator<string> {
    const id = itemId({ answerId: this.#answerId(), kind: "function_call", index });
    const where = { item_id: id, output_index: this.#done.length };
    yield this.#frame("response.output_item.added", {
      output_index: this.#done.length,
      item: callItem(id, { call, status: "in_progress" }),
    });
    yield this.#frame("response.function_call_arguments.delta", { ...where, delta: call.arguments });
    yield this.#frame("response.function_call_arguments.done", {
      ...where,
      name: call.name,
      arguments: call.arguments,
    });
    yield this.#itemDone(callItem(id, { call, status: "completed" }));
  }

  #itemDone(item: OutputItem): string {
    const frame = this.#frame("response.output_item.done", { output_index: this.#done.length, item });
    this.#done.push(item);
    return frame;
  }

  #item(kind: OpenItem["kind"], id: string, state: { text: string | null; status: ItemStatus }): OutputItem {
    return kind === "reasoning" ? reasoningItem(id, this.#view, state) : messageItem(id, state);
  }

  #part(kind: OpenItem["kind"], text: string): Record<string, unknown> {
    return kind === "reasoning" ? reasoningPart(text, this.#view) : textPart(text);
  }

  #partEvent(kind: OpenItem["kind"]): string {
    return kind === "reasoning" && this.#view.summary ? "response.reasoning_summary_part" : "response.content_part";
  }

  #textEvent(kind: OpenItem["kind"]): string {
    if (kind === "message") return "response.output_text";
    return this.#view.summary ? "response.reasoning_summary_text" : "response.reasoning_text";
  }

  #itemId(kind: ItemKind): string {
    const index = this.#done.filter((item) => item.type === kind).length;
    return itemId({ answerId: this.#answerId(), kind, index });
  }

  #answerId(): string {
    if (this.#started === null) throw new Error("An answer said something before it started");
    return this.#started.answerId;
  }

  /** An event about the part of an item; each item has one. */
  #itemFrame(type: string, id: string, fields: Record<string, unknown>): string {
    const isSummary = type.startsWith("response.reasoning_summary");
    const part = isSummary ? { summary_index: 0 } : { content_index: 0 };
    const logprobs = type.startsWith("response.output_text") ? { logprobs: [] } : {};
    return this.#frame(type, { item_id: id, output_index: this.#done.length, ...part, ...fields, ...logprobs });
  }

  #stateFrame(type: string, state: Record<string, unknown>, beside: Record<string, unknown> = {}): string {
    if (this.#started === null) throw new Error("An answer ended before it started");
    const whole = { usage: null, ...state, output: this.#done };
    return this.#frame(type, { response: responseObject(this.#started, this.#view, whole), ...beside });
  }

  #frame(type: string, fields: Record<string, unknown>): string {
    return namedFrame({ type, sequence_number: this.#sequence++, ...fields });
  }
}
