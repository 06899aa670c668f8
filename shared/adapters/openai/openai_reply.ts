/** A reply of OpenAI's chat completions, whole or in chunks, read into one form. It knows no HTTP. */

import type { ChatCompletion, ChatCompletionChunk, CompletionUsage } from "openai/resources";
import { VerbatimError } from "../../core/errors.ts";
import type { BackendDelta } from "../../ports/model_backend.ts";
import type { GenerationResult } from "../../schemas/generate.ts";

/** What was replied, without what it cost. */
export type ChatReply = Omit<GenerationResult, "cost_usd">;

interface Call {
  id: string;
  name: string;
  arguments: string;
}

/** Gathers one reply. What is certain is told as it comes; a call only when the reply has ended. */
export class ReplyReader {
  readonly #onDelta: (delta: BackendDelta) => void;
  readonly #newCallId: () => string;
  #text = "";
  #reasoning = "";
  readonly #calls: Call[] = [];
  #finish: string | null = null;
  #usage: CompletionUsage | null = null;

  constructor(
    options: { readonly onDelta?: ((delta: BackendDelta) => void) | undefined; readonly newCallId: () => string },
  ) {
    this.#onDelta = options.onDelta ?? (() => {});
    this.#newCallId = options.newCallId;
  }

  /** Reads a chunk. */
  push(chunk: ChatCompletionChunk): void {
    if (!isRecord(chunk)) throw inconsistent("has a chunk that is no object");
    if (chunk.usage !== null && chunk.usage !== undefined) this.#usage = chunk.usage;
    const [choice] = chunk.choices ?? [];
    if (choice === undefined) return;
    const { delta } = choice;
    this.#say(delta, delta.content ?? delta.refusal ?? null);
    for (const part of delta.tool_calls ?? []) {
      const call = this.#call(part);
      if (part.id) call.id = part.id;
      call.name += part.function?.name ?? "";
      call.arguments += part.function?.arguments ?? "";
    }
    if (choice.finish_reason) this.#finish = choice.finish_reason;
  }

  /** Reads a whole reply. */
  take(completion: ChatCompletion): void {
    if (!isRecord(completion)) throw inconsistent("is no object");
    this.#usage = completion.usage ?? null;
    const [choice] = completion.choices ?? [];
    if (choice === undefined) throw inconsistent("has no choice");
    const { message } = choice;
    this.#say(message, message.content ?? message.refusal ?? null);
    for (const call of message.tool_calls ?? []) {
      if (call.type !== "function") throw inconsistent(`has a call of type ${JSON.stringify(call.type)}`);
      this.#calls.push({ id: call.id, name: call.function.name, arguments: call.function.arguments });
    }
    this.#finish = choice.finish_reason ?? null;
  }

  /** The reply, which has ended. One without an end or without counts is `engine_inconsistent`: neither is guessed. */
  end(): ChatReply {
    const finish = this.#finish;
    const usage = this.#usage;
    if (finish === null) throw new VerbatimError("engine_failed", "The backend broke off its reply");
    if (usage === null) throw inconsistent("does not say how many tokens it has");
    if (!isCount(usage.prompt_tokens) || !isCount(usage.completion_tokens)) throw inconsistent("miscounts its tokens");
    const calls = this.#calls.map((call) => {
      if (call.name === "") throw inconsistent("has a call without a name");
      return {
        ...call,
        id: call.id || this.#newCallId(),
        arguments: call.arguments.trim() === "" ? "{}" : call.arguments,
      };
    });
    for (const call of calls) this.#onDelta({ type: "tool_call", ...call });
    const reasoningTokens = usage.completion_tokens_details?.reasoning_tokens;
    return {
      text: this.#text,
      token_ids: null,
      logprobs: null,
      tool_calls: calls.length === 0 ? null : calls.map((call) => ({
        id: call.id,
        type: "function" as const,
        function: { name: call.name, arguments: call.arguments },
      })),
      reasoning: this.#reasoning === "" ? null : this.#reasoning,
      finish_reason: finishReason(finish, calls.length > 0),
      usage: {
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? null,
        ...(reasoningTokens === undefined ? {} : { reasoning_tokens: reasoningTokens }),
      },
      weight_version: null,
    };
  }

  /** Whether anything was told. */
  get hasSpoken(): boolean {
    return this.#text !== "" || this.#reasoning !== "";
  }

  /** The call that a chunk goes on with. Some APIs do not number them: an id then begins the next. */
  #call(part: { readonly index?: number; readonly id?: string }): Call {
    const calls = this.#calls;
    const index = part.index ?? (part.id ? calls.length : calls.length - 1);
    if (index === calls.length) calls.push({ id: "", name: "", arguments: "" });
    const call = calls[index];
    if (call === undefined) throw inconsistent("goes on with a call that it has not begun");
    return call;
  }

  #say(from: object, text: string | null): void {
    const reasoning = reasoningOf(from);
    if (reasoning !== "") {
      this.#reasoning += reasoning;
      this.#onDelta({ type: "reasoning", text: reasoning });
    }
    if (text === null || text === "") return;
    this.#text += text;
    this.#onDelta({ type: "content", text });
  }
}

/** Some APIs end a reply of calls with "stop". */
function finishReason(finish: string, hasCalls: boolean): GenerationResult["finish_reason"] {
  switch (finish) {
    case "stop":
    case "tool_calls":
      return hasCalls ? "tool_calls" : "stop";
    case "length":
      return "length";
    default:
      return `error:${finish}`;
  }
}

/** Some APIs of this kind tell their models' reasoning, under one of two names. */
function reasoningOf(from: object): string {
  if ("reasoning_content" in from && typeof from.reasoning_content === "string") return from.reasoning_content;
  return "reasoning" in from && typeof from.reasoning === "string" ? from.reasoning : "";
}

/** The package promises shapes that it does not check. */
function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function inconsistent(what: string): VerbatimError {
  return new VerbatimError("engine_inconsistent", `The backend's reply ${what}`);
}
