/** What a dialect is: how a request is read, and how answers, deltas and errors are written. One file implements each. */

import type { VerbatimError } from "../../shared/core/errors.ts";
import type { AssistantMessage, Conversation } from "../../shared/core/message.ts";
import type { SamplingParams } from "../../shared/core/sampling.ts";
import type { Turn } from "../../shared/core/turn.ts";
import type { ParserRequest, Renderer } from "../../shared/ports/renderer.ts";
import type { Answer, CallEvent } from "../../shared/services/turns/shared_call.ts";

/** A request in no dialect. */
export interface DialectRequest {
  readonly model: string | null;
  readonly conversation: Conversation;
  readonly toolChoice: ParserRequest["toolChoice"];
  /** False: one call at most. */
  readonly parallelCalls: boolean;
  /** What the agent asks for, in SGLang's names. */
  readonly wished: SamplingParams;
  /** Fields that were accepted and do nothing. */
  readonly ignoredFields: readonly string[];
  readonly stream: boolean;
  /** So many of the most likely tokens are shown at each position; absent: none. */
  readonly topLogprobs?: number;
  /** Whether a later request may go on from this one by the answer's id. */
  readonly keepsInput: boolean;
}

/** One dialect, bound to one request's body. */
export interface Dialect {
  /** As in turn records. */
  readonly name: "chat" | "responses" | "messages";
  readonly request: DialectRequest;
  /** The answer's body as JSON text. */
  body(answer: Answer): string;
  /** The answer's stream; to be called once. The terminal frames come after the `end` event. */
  frames(events: AsyncIterable<CallEvent>): AsyncIterable<string>;
  /** The frame that tells a streaming client what failed; the connection breaks after it. */
  failure(error: VerbatimError): string;
  /** How it writes a reply, call ids aside: what an exact echo looks like. */
  formOf(reply: Omit<AssistantMessage, "form">): string;
  /** What is sent into a silence. */
  readonly keepAlive: string;
}

/** What a reader may ask for beside the body. */
export interface ReadContext {
  /** The renderer of a model name, where null is the default model; null of a text-level model, which has none. */
  rendererOf(model: string | null): Renderer | null;
  /** The task's turns so far; none where nothing is recorded. */
  earlierTurns(): Promise<readonly Turn[]>;
}

/** Reads a request's body. What it can't honour is thrown as `invalid_request` or `unsupported`. */
export type ReadDialect = (json: unknown, context: ReadContext) => Promise<Dialect>;

/** How a dialect writes the answer to a call that failed, which may be before its request could be read. */
export interface DialectErrors {
  /** The status and body. */
  response(error: VerbatimError, requestId: string): { readonly status: number; readonly body: unknown };
}

/** Statuses on agent endpoints are those of the table, but for a task that is closed: a scaffold should give up. */
export function agentStatus(error: VerbatimError): number {
  return error.code === "task_closed" ? 503 : error.status;
}
