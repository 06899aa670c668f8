/** Messages to tokens and tokens to message, for one model family. Implementations: rendering/. */

import type { Conversation, Json, Message, ToolCall } from "../core/message.ts";
import type { CompletionParser } from "./completion_parser.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** A rendered prompt, or what to put after a series. */
export interface Rendered {
  readonly ids: Uint32Array;
  /** Whether the generation prompt leaves the model inside an open reasoning block. */
  readonly opensReasoning: boolean;
}

export interface RenderIncrement {
  /** The messages to append; none of the conversation before them is rendered. Assistant messages among them are context. */
  readonly appended: readonly Message[];
  readonly tools: Conversation["tools"];
  readonly settings: Conversation["settings"];
  /** The last token of the series: what it already closes of the sampled turn is not rendered again. */
  readonly lastToken: number | null;
  /** The calls of the series that appended tool results may answer; some templates write their names again. */
  readonly calls?: readonly Pick<ToolCall, "id" | "name">[];
}

export interface ParserRequest {
  readonly tools: Conversation["tools"];
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  readonly opensReasoning: boolean;
}

export interface Renderer {
  /** `qwen3`, `qwen3_coder`, `general`, ... */
  readonly family: string;
  readonly toolCallParser: string | null;
  readonly reasoningParser: string | null;
  readonly tokenizer: Tokenizer;
  /** Tokens that end a turn, the template's closer first. Sent to the engine as stop tokens. */
  readonly stopTokenIds: readonly number[];
  /** The whole prompt with the generation prompt. A conversation the template refuses is `invalid_request`. */
  renderPrompt(
    conversation: Conversation,
    options?: { addGenerationPrompt?: boolean; signal?: AbortSignal },
  ): Promise<Rendered>;
  /** The increment after a series: the rest of the closer, the appended messages, the generation prompt. */
  renderIncrement(increment: RenderIncrement, options?: { signal?: AbortSignal }): Promise<Rendered>;
  /**
   * Whether the template, given this conversation, writes the reasoning of these assistant messages (indexes), had they
   * any. Cheap: no text of the conversation is rendered or encoded.
   */
  keepsReasoning(conversation: Conversation, assistants: readonly number[]): boolean;
  /** A parser for one completion. */
  parser(request: ParserRequest): CompletionParser;
  /** The id of the nth call of a conversation in this family's form; `priorCalls` counts the calls before it. `random` gives hex digits. */
  callId(call: { name: string; priorCalls: number; random: (hexDigits: number) => string }): string;
  /** What was checked before first use, for `/readyz`. */
  readonly checks: readonly {
    readonly name: string;
    readonly passed: boolean;
    readonly reason?: string;
    readonly details?: Json;
  }[];
}
