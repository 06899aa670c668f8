/** What operators count. It speaks of turns, calls and tasks; adapters turn it into a format. */

import type { Relation } from "../core/turn_history.ts";
import type { TurnRecord } from "../core/turn.ts";

/** How an agent's call ended: with a new turn, with a stored one, without recording, or with an error's code. */
export type CallOutcome = "turn" | "replay" | "unrecorded" | `error:${string}`;

/** A model's generations now. */
export interface GenerationLoad {
  readonly model: string;
  /** At the engine, and waiting for their turn. */
  readonly running: number;
  readonly waiting: number;
  readonly paused: boolean;
  /** How often one went on after the engine had given it up, since the start. */
  readonly resumed: number;
}

/** What the teacher was asked for since the start. */
export interface TeacherLoad {
  /** Sequences that were scored, and those that failed for good. */
  readonly scored: number;
  readonly failed: number;
  /** Attempts after a first one. */
  readonly retries: number;
  /** Response tokens of the scored sequences, context between them included. */
  readonly tokens: number;
}

/** What is asked for at each look. */
export interface MetricsSources {
  readonly callsInFlight: () => number;
  readonly generations: () => readonly GenerationLoad[];
  /** Null where no teacher is configured. */
  readonly teacher: () => TeacherLoad | null;
}

export interface Metrics {
  /** An agent's call came to its end. */
  callEnded(call: { readonly dialect: string; readonly outcome: CallOutcome; readonly seconds: number }): void;
  /** A turn was committed; `relation` and `echo` say how it was taken, `parent` is the turn whose series it extends, `toldVersion` the weights that the trainer told last. */
  turnCommitted(
    record: TurnRecord,
    place: {
      readonly relation: Relation;
      readonly echo: string | null;
      readonly parent: TurnRecord | null;
      readonly toldVersion: string | null;
    },
  ): void;
  /** A task was finished; `reason` is why its capture is invalid, or null. */
  taskFinished(task: { readonly outcome: string; readonly reason: string | null }): void;
  /** A text-level model answered. `costUsd` is null where its price is not known. */
  textAnswered(answer: {
    readonly model: string;
    readonly promptTokens: number;
    readonly cachedTokens: number | null;
    readonly completionTokens: number;
    readonly reasoningTokens: number | null;
    readonly costUsd: number | null;
  }): void;
  /** The state of all counters, as the format's text. */
  text(): Promise<{ readonly contentType: string; readonly body: string }>;
}
