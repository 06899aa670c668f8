/** What a dialect is: how a request is read, and how answers, deltas and errors are written. One file implements each. */

import type { VerbatimError } from "../../shared/core/errors.ts";
import type { AssistantMessage, Conversation } from "../../shared/core/message.ts";
import type { SamplingParams } from "../../shared/core/sampling.ts";
import type { ParserRequest } from "../../shared/ports/renderer.ts";
import type { Answer, CallEvent } from "../../shared/services/shared_call.ts";

/** A request in no dialect. */
export interface DialectRequest {
  readonly model: string | null;
  readonly conversation: Conversation;
  readonly toolChoice: ParserRequest["toolChoice"];
  /** What the agent asks for, in SGLang's names. */
  readonly wished: SamplingParams;
  /** Fields that were accepted and do nothing. */
  readonly ignoredFields: readonly string[];
  readonly stream: boolean;
}

/** One dialect, bound to one request's body. */
export interface Dialect {
  /** As in turn records. */
  readonly name: "chat" | "responses" | "messages";
  readonly request: DialectRequest;
  /** The answer's body. */
  body(answer: Answer): unknown;
  /** The answer's stream. The terminal frames come after the `end` event. */
  frames(events: AsyncIterable<CallEvent>): AsyncIterable<string>;
  /** How it writes a reply, call ids aside: what an exact echo looks like. */
  formOf(reply: Omit<AssistantMessage, "form">): string;
  /** What is sent into a silence. */
  readonly keepAlive: string;
}

/** How a dialect writes errors; they may come before a request could be read. */
export interface DialectErrors {
  /** The status and body of a failed call. */
  response(error: VerbatimError): { readonly status: number; readonly body: unknown };
  /** The frame that tells a streaming client what failed. */
  frame(error: VerbatimError): string;
}

/** Statuses on agent endpoints are those of the table, but for a task that is closed: a scaffold should give up. */
export function agentStatus(error: VerbatimError): number {
  return error.code === "task_closed" ? 503 : error.status;
}
