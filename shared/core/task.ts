/** One rollout attempt: its settings, its status and its counters. It does not know how it is stored. */

import type { Json } from "./message.ts";
import type { Rollin } from "./rollin.ts";
import type { SamplingParams } from "./sampling.ts";
import type { ExtraName } from "./turn_extras.ts";

/** Where a task stands. `expired` is not stored: `expiresAtMs` decides. */
export type TaskStatus = "open" | "closing" | "finished" | "dropped";

/** How a rollout ended. */
export type Outcome = "completed" | "truncated" | "aborted" | "failed" | "infra";

/** A reward: a number, or named numbers. */
export type Reward = number | { readonly [name: string]: number };

/** Which root is the main one, where the earliest is not. */
export interface MainSelector {
  /** Headers that a request of the main line carries. */
  readonly header?: { readonly [name: string]: string };
  /** A tool that the main line offers. */
  readonly toolsInclude?: string;
  /** Text that the main line's system message contains. */
  readonly systemIncludes?: string;
}

/** What a task was created with; fixed for its life. */
export interface TaskSettings {
  /** Prompt group, for baselines over several rollouts of one prompt. */
  readonly groupId: string | null;
  /** The rollout; rows of one task share it. */
  readonly rolloutId: string | number | null;
  /** The task this one is a part of (sub-agents with keys of their own). */
  readonly parentTaskId: string | null;
  /** Sent to the router, so that one task's calls find one worker's cache. */
  readonly routingKey: string;
  /** Model name, or null for the default. */
  readonly model: string | null;
  /** The caller's own. */
  readonly metadata: { readonly [key: string]: Json };
  /** Whether turns are recorded. */
  readonly capture: boolean;
  /** History policy. */
  readonly history: "append_only" | "branch";
  /** Whether whatever stands in a reply's place is its echo. */
  readonly echo: "lenient" | "strict";
  /** What the same request again means. */
  readonly onRepeat: "auto" | "replay" | "resample";
  /** Whether earlier reasoning stays in the series although the template would now drop it. */
  readonly reasoningHistory: "keep" | "template";
  /** The main root's marks. */
  readonly main: MainSelector | null;
  /** Sampling that holds whatever the agent asks for. */
  readonly fixedSampling: SamplingParams;
  /** Sampling parameters the agent may set. */
  readonly agentMaySet: readonly string[];
  /** Roles of rows that train. */
  readonly trainRoles: readonly string[];
  /** What an aborted generation becomes. */
  readonly onAbort: "resume" | "fail";
  /** Most weight versions a path may span: turns beyond are marked and do not train. Null for any. */
  readonly maxVersionSpan: number | null;
  /** Most committed turns, or null. */
  readonly maxTurns: number | null;
  /** Most prompt and completion tokens over all turns, or null. */
  readonly maxTotalTokens: number | null;
  /** Context limit below the model's, or null. */
  readonly maxContextTokens: number | null;
  /** Whether the teacher scores each turn as soon as it is committed; absent: only when asked to. */
  readonly score?: "per_turn";
  /** What is captured of each turn beside tokens and logprobs; absent: nothing. */
  readonly captureExtras?: readonly ExtraName[];
  /** Which turns the teacher executes; absent: none. */
  readonly rollin?: Rollin;
}

/** A task's record. The only thing of a task that changes in place; every change is checked against the version read. */
export interface TaskRecord {
  /** The caller's name for it; may be used again once this task has expired. */
  readonly taskId: string;
  /** Random, never used again: everything stored of the task is under it. */
  readonly uid: string;
  /** SHA-256 of the task key, hex. */
  readonly keyHash: string;
  /** What it was created with. */
  readonly settings: TaskSettings;
  /** Where it stands. */
  readonly status: TaskStatus;
  /** Number of turns committed; the next turn's number. */
  readonly turns: number;
  /** Prompt tokens of all turns. */
  readonly promptTokens: number;
  /** Sampled tokens of all turns. */
  readonly completionTokens: number;
  /** When it was created. */
  readonly createdAtMs: number;
  /** When it stops to exist; fixed at creation. */
  readonly expiresAtMs: number;
  /** When it was finished or dropped. */
  readonly closedAtMs: number | null;
  /** How it ended. */
  readonly outcome: Outcome | null;
  /** The trainer's words on how it ended. */
  readonly cause: string | null;
  /** The reward. */
  readonly reward: Reward | null;
  /** Rewards of single turns. */
  readonly perTurnRewards: { readonly [turn: string]: number };
  /** Metadata given at finish, merged over the creation's. */
  readonly finishMetadata: { readonly [key: string]: Json };
}

/** A call in flight, as other processes see it. */
export interface CallLease {
  /** Random id of the call. */
  readonly callId: string;
  /** Digest of the request, as in the turn record. */
  readonly digest: string;
  /** The engine's id of the request. */
  readonly rid: string;
  /** When it started. */
  readonly startedAtMs: number;
  /** Until when it holds; the process renews it, a dead process's lease runs out. */
  readonly untilMs: number;
}

/** Something that happened to a task or to an answer after its turn was committed. */
export interface TaskEvent {
  /** Sortable id; the order of events. */
  readonly ulid: string;
  /** When. */
  readonly atMs: number;
  /** What. */
  readonly type: "delivered" | "undelivered" | "replayed" | "refused" | "failed" | "finished" | "rewarded";
  /** The turn it speaks of, or null. */
  readonly turn: number | null;
  /** Facts. */
  readonly detail: { readonly [key: string]: Json };
}
