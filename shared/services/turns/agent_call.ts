/** One request of an agent, in no dialect, on its way to becoming a turn. */

import type { KnownJson } from "../../core/growing_json.ts";
import type { AssistantMessage, Conversation } from "../../core/message.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import type { ParserRequest } from "../../ports/renderer.ts";
import type { VersionedTask } from "../../ports/task_store.ts";
import type { KeptRequest } from "./kept_requests.ts";
import type { Model } from "../model_catalog.ts";
import type { Answer, Waiter } from "./shared_call.ts";

/** What a dialect made of a request. */
export interface AgentCall {
  /** The task whose key was used, as it was read; null: nothing is recorded. */
  readonly read: VersionedTask | null;
  /** Whose turn it is where calls wait for the engine: the task's uid, or what stands for a key without a task. */
  readonly fairKey: string;
  readonly model: Model;
  /** The model name that answers repeat. */
  readonly modelName: string;
  readonly dialect: string;
  readonly conversation: Conversation;
  /** The request's body as parsed, to be kept for the next one; null where it holds no list that could grow. */
  readonly body: KnownJson | null;
  /** The request of the task that this one was found to repeat most of, or null. */
  readonly nearest: KeptRequest | null;
  readonly toolChoice: ParserRequest["toolChoice"];
  /** Sampling the agent asks for. */
  readonly wished: SamplingParams;
  readonly ignoredFields: readonly string[];
  readonly stream: boolean;
  /** So many of the most likely tokens are shown at each position; absent: none. */
  readonly topLogprobs?: number;
  /** Whether its conversation is kept, so that a later request may go on from it by the answer's id. */
  readonly keepsInput: boolean;
  /** Whether the client says that it sends the request again. */
  readonly isRetry: boolean;
  /** A request header, or null. */
  readonly header: (name: string) => string | null;
  /** How the dialect writes a reply, call ids aside: what an exact echo looks like. */
  readonly formOf: (reply: Omit<AssistantMessage, "form">) => string;
  readonly arrivedAtMs: number;
}

/** A call that is answered or being answered. */
export interface Following {
  readonly waiter: Waiter;
  /** Call when the answer has gone out whole (true) or not. */
  settled(answer: Answer, delivered: boolean): Promise<void>;
}
