/** A model behind an API that answers whole requests. Adapter: openai_backend. */

import type { Message, ToolDefinition } from "../core/message.ts";
import type { SamplingParams } from "../core/sampling.ts";
import type { GenerationResult } from "../schemas/generate.ts";
import type { ParserRequest } from "./renderer.ts";

/** A piece of a reply, final when it is given; a tool call is whole. */
export type BackendDelta =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "content"; readonly text: string }
  | { readonly type: "tool_call"; readonly id: string; readonly name: string; readonly arguments: string };

/** One request. Exactly one of `input_ids` and `messages` is set; a text backend takes messages alone. */
export interface BackendRequest {
  readonly input_ids?: readonly number[];
  readonly messages?: readonly Message[];
  readonly tools?: readonly ToolDefinition[];
  /** Default `"auto"`. */
  readonly tool_choice?: ParserRequest["toolChoice"];
  /** False: one call at most. Default true. */
  readonly parallel_tool_calls?: boolean;
  readonly reasoning_effort?: string;
  /** SGLang's names. What the backend has no word for is `unsupported`, never dropped. */
  readonly sampling_params: SamplingParams;
  /** Aborts the request at the backend too. */
  readonly signal: AbortSignal;
  /** Told of the reply as it comes; absent: it comes whole. */
  readonly onDelta?: (delta: BackendDelta) => void;
}

export interface ModelBackend {
  /** False: text in, text out. Its results have no ids and no logprobs, and nothing of it can be recorded. */
  readonly supportsTokenIds: boolean;
  /**
   * One reply. Retries, limits and waits are the backend's own. Failures are `engine_*` errors; `busy` with a
   * `Retry-After` where it says that it is asked too much.
   */
  generate(request: BackendRequest): Promise<GenerationResult>;
  /** Throws `unsupported` where the backend has no tokens, as does `decode`. */
  tokenize(text: string): number[];
  decode(ids: ArrayLike<number>): string;
}
