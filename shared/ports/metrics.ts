/** What operators count. It speaks of turns, calls and tasks; adapters turn it into a format. */

import type { Relation } from "../core/turn_history.ts";
import type { TurnRecord } from "../core/turn.ts";

/** How an agent's call ended: with a new turn, with a stored one, without recording, or with an error's code. */
export type CallOutcome = "turn" | "replay" | "unrecorded" | `error:${string}`;

export interface Metrics {
  /** An agent's call came to its end. */
  callEnded(call: { readonly dialect: string; readonly outcome: CallOutcome; readonly seconds: number }): void;
  /** A turn was committed; `relation` and `echo` say how it was taken. */
  turnCommitted(record: TurnRecord, place: { readonly relation: Relation; readonly echo: string | null }): void;
  /** A task was finished; `reason` is why its capture is invalid, or null. */
  taskFinished(task: { readonly outcome: string; readonly reason: string | null }): void;
  /** The state of all counters, as the format's text. */
  text(): Promise<{ readonly contentType: string; readonly body: string }>;
}
