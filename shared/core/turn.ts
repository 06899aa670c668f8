/** One committed model call. Immutable once written. It knows neither how it is stored nor how it was rendered. */

import type { KeptInput } from "./kept_input.ts";
import type { AssistantMessage } from "./message.ts";
import type { Basis, SamplingParams } from "./sampling.ts";
import type { TurnExtras } from "./turn_extras.ts";
import type { TurnHistory } from "./turn_history.ts";

/** How a generation ended. `stop` carries what matched: a token id or a stop string. */
export type Finish =
  | { readonly type: "stop"; readonly matched: number | string | null }
  | { readonly type: "length" };

/** The finish reason as agents see it. */
export type FinishReason = "stop" | "length" | "tool_calls";

/** How the sampled text was read (parsing rules 3, 6): `malformed` and `truncated` blocks stay in the content as text. */
export interface ParseReport {
  /** Whether every block was whole and good. */
  readonly status: "ok" | "malformed" | "truncated";
  /** Kinds of problems met, each once: `unknown_tool`, `argument_type`, `unknown_parameter`. */
  readonly problems: readonly string[];
}

/** A stretch of a turn's sampled tokens and the weights that sampled it; `end` is exclusive. */
export interface VersionSegment {
  /** The engine's free-form version string, or null where the engine told none. */
  readonly version: string | null;
  /** First completion position. */
  readonly start: number;
  /** Position after the last. */
  readonly end: number;
  /** False where the engine can't tell which weights sampled which token. */
  readonly exact: boolean;
}

/** What is known of a teacher's action beside its tokens. */
export interface TeacherAction {
  /** The teacher's name. */
  readonly model: string;
  /** Its weights, or null where its engine told none. */
  readonly weightVersion: string | null;
  /** Calls that it made at once with the one that was executed, and that were not. */
  readonly droppedCalls: number;
  /** What it thought or said beside its decision that the student's format can't say at this place. */
  readonly leftOut: readonly ("reasoning" | "text")[];
}

/** What of a turn is small and bounded: the record. Its arrays and its detail stand beside it. */
export interface TurnRecord {
  /** Number within the task, from 0, in the order of commits. */
  readonly turn: number;
  /** The turn whose series this one extends; null: the prompt was rendered whole. */
  readonly parent: number | null;
  /**
   * The turn whose series it went on from, where the template would now write that series' reasoning otherwise: the
   * prompt was rendered whole instead. Absent where nothing of the kind happened.
   */
  readonly rewriteOf?: number;
  /** Digest of what makes a request the same request (units, tools, template settings, effective sampling). */
  readonly digest: string;
  /** How the generation ended. */
  readonly finish: Finish;
  /** The finish reason the agent saw. */
  readonly finishReason: FinishReason;
  /** How the text was read. */
  readonly parse: ParseReport;
  /** Whether a stop token, of the model or of the request, ended it; it is then the last sampled token. */
  readonly closed: boolean;
  /** Tokens of the whole prompt. */
  readonly promptTokens: number;
  /** Tokens of the prompt that the parent's series does not hold. */
  readonly observationTokens: number;
  /** Sampled tokens; of a teacher's turn, those its action takes. */
  readonly completionTokens: number;
  /** Of the completion, tokens inside reasoning; null where no reasoning parser ran. */
  readonly reasoningTokens: number | null;
  /** Prompt tokens the engine had cached, or null where it did not say. */
  readonly cachedTokens: number | null;
  /** Which of the policy's weights sampled what; none of a teacher's turn. */
  readonly weightVersions: readonly VersionSegment[];
  /** How often the generation went on from its own tokens after the engine had given it up. Absent: it ran through. */
  readonly resumed?: number;
  /** Sampling parameters sent to the engine; of a teacher's turn, to the teacher's. */
  readonly sampling: SamplingParams;
  /** What the logprobs are logprobs of. A teacher's turn has none: it is how the teacher was asked. */
  readonly basis: Basis;
  /** Request fields that were accepted and did nothing, or were wished in vain. */
  readonly ignoredFields: readonly string[];
  /** The dialect of the request: `chat`, `responses`, `messages`. */
  readonly dialect: string;
  /** The model name of the request. */
  readonly model: string;
  /** Whose action it is: the policy sampled it, or the teacher decided it. */
  readonly actor: "policy" | "teacher";
  /** Of a teacher's turn. */
  readonly teacher?: TeacherAction;
  /** What its task captures beside tokens and logprobs. Absent: nothing. */
  readonly extras?: TurnExtras;
  /** The engine's id of the request. */
  readonly rid: string;
  /** Hex digits from which dialects make the ids they show, the same under replay. */
  readonly answerId: string;
  /** Wall clock, epoch milliseconds. */
  readonly startedAtMs: number;
  /** From the request's arrival to the commit. */
  readonly durationMs: number;
  /** Time spent in engine calls. */
  readonly engineMs: number;
  /** Time spent waiting for them (rendering, locks, the queue before the engine, pauses, retries). */
  readonly waitMs: number;
}

/** What of a turn is of any size and read with it: its place in the history, and the reply as it was served. */
export interface TurnDetail {
  /** What the history needs to know. */
  readonly history: TurnHistory;
  /** The assistant message as parsed; its ids are those the agent saw. */
  readonly reply: AssistantMessage;
  /** The conversation it was asked with, where a later request may go on from it by the answer's id. */
  readonly input?: KeptInput;
}

/** A turn whole. */
export interface Turn {
  /** The record. */
  readonly record: TurnRecord;
  /** History and reply. */
  readonly detail: TurnDetail;
  /** Prompt tokens added since the parent (all of them where the parent is null); mask 0. */
  readonly observation: Uint32Array;
  /** Sampled tokens, verbatim; mask 1. Of a teacher's turn: its action in the student's format; mask 0. */
  readonly completion: Uint32Array;
  /**
   * One logprob a sampled token, bit for bit as the engine sent it: float32 where every value is one, else float64. Of a
   * teacher's turn 0.0 each.
   */
  readonly logprobs: Float32Array | Float64Array;
}
