/**
 * Anthropic messages: the answer's stream. Blocks stand one after the other, as in the body: thinking, text, calls.
 * Thinking and text flow as they are sampled; calls come after the text, since more text may follow a call.
 */

import type { Hash } from "node:crypto";
import type { Json, ToolCall } from "../../shared/core/message.ts";
import type { Answer, AnswerDelta, CallEvent } from "../../shared/services/turns/shared_call.ts";
import { namedFrame } from "./named_frame.ts";
import { inputUsage, messageId, stopOf, thinkingHash, usageOf } from "./messages_answer.ts";

/** The answer's stream, from `message_start` to `message_stop`. */
export async function* messagesFrames(events: AsyncIterable<CallEvent>): AsyncGenerator<string> {
  const blocks = new BlockWriter();
  for await (const event of events) {
    switch (event.type) {
      case "started":
        yield messageStart(event);
        yield namedFrame({ type: "ping" });
        break;
      case "tokens":
        break;
      case "delta":
        yield* blocks.delta(event.delta);
        break;
      case "end":
        yield* blocks.end(event.answer.reply.toolCalls);
        yield* lastFrames(event.answer);
    }
  }
}

function messageStart(event: Extract<CallEvent, { type: "started" }>): string {
  return namedFrame({
    type: "message_start",
    message: {
      id: messageId(event.answerId),
      type: "message",
      role: "assistant",
      model: event.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: inputUsage(event.promptTokens, 0, 0),
    },
  });
}

function* lastFrames(answer: Answer): Generator<string> {
  yield namedFrame({
    type: "message_delta",
    delta: stopOf(answer),
    usage: usageOf(answer),
    verbatim: { turn: answer.turn },
  });
  yield namedFrame({ type: "message_stop" });
}

/** Writes blocks, one open at a time. */
class BlockWriter {
  #index = -1;
  #open: { readonly type: "thinking"; readonly hash: Hash } | { readonly type: "text" } | null = null;
  #hadText = false;
  /** Reasoning that came after text began: a block of its own after the text. */
  #late = "";

  *delta(delta: AnswerDelta): Generator<string> {
    switch (delta.type) {
      case "reasoning":
        if (this.#hadText) this.#late += delta.text;
        else yield* this.#thinking(delta.text);
        break;
      case "content":
        yield* this.#text(delta.text);
        break;
      case "tool_call":
        break;
    }
  }

  *end(calls: readonly ToolCall[]): Generator<string> {
    if (this.#late !== "") yield* this.#thinking(this.#late);
    yield* this.#close();
    for (const { id, name, arguments: input } of calls) {
      yield this.#start({ type: "tool_use", id, name, input: {} });
      yield this.#delta({ type: "input_json_delta", partial_json: input });
      yield this.#stop();
    }
  }

  *#thinking(text: string): Generator<string> {
    if (this.#open?.type !== "thinking") {
      yield* this.#close();
      this.#open = { type: "thinking", hash: thinkingHash() };
      yield this.#start({ type: "thinking", thinking: "", signature: "" });
    }
    this.#open.hash.update(text);
    yield this.#delta({ type: "thinking_delta", thinking: text });
  }

  *#text(text: string): Generator<string> {
    if (this.#open?.type !== "text") {
      yield* this.#close();
      this.#open = { type: "text" };
      this.#hadText = true;
      yield this.#start({ type: "text", text: "" });
    }
    yield this.#delta({ type: "text_delta", text });
  }

  *#close(): Generator<string> {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    if (open.type === "thinking") {
      yield this.#delta({ type: "signature_delta", signature: open.hash.digest("base64") });
    }
    yield this.#stop();
  }

  #start(block: { [key: string]: Json }): string {
    return namedFrame({ type: "content_block_start", index: ++this.#index, content_block: block });
  }

  #delta(delta: { [key: string]: Json }): string {
    return namedFrame({ type: "content_block_delta", index: this.#index, delta });
  }

  #stop(): string {
    return namedFrame({ type: "content_block_stop", index: this.#index });
  }
}
