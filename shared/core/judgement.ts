/** What the history policies say about a task: plain data. It does not know how it was found. */

import type { Difference } from "./difference.ts";
import type { Echo, EchoGrade, ReasoningFate } from "./echo_grade.ts";
import type { Relation } from "./turn_history.ts";

/** What a turn is to the task. */
export type TurnRole = "main" | "branch" | "side" | "superseded";

/** A verdict of `append_only`. */
export type Verdict =
  | { readonly type: "ok" }
  | { readonly type: "replay" }
  | { readonly type: "side" }
  | { readonly type: "shrank" }
  | { readonly type: "rewritten"; readonly message: number };

/** The decision on one request. */
export interface Decision {
  /** Its number among all requests, failed ones included, from 0. */
  readonly entry: number;
  /** Its number among the answered requests, replays included; null where it failed. */
  readonly request: number | null;
  /** The turn that answered it, or null. */
  readonly turn: number | null;
  /** Whether it made its turn, was answered with a stored one, or failed. */
  readonly kind: "turn" | "replay" | "failed";
  /** How it hangs in the tree. */
  readonly relation: Relation;
  /** The related entry, or null. */
  readonly relatedEntry: number | null;
  /** The related turn; null where there is none. */
  readonly relatedTo: number | null;
  /** How the related turn's reply came back. */
  readonly echo: EchoGrade | null;
  /** What else changed in it. */
  readonly also: readonly Echo[];
  /** What became of its reasoning. */
  readonly reasoning: ReasoningFate | null;
  /** Whether its tool list differs from the related one's. */
  readonly toolsChanged: boolean;
  /** Where it differs: from the series where that is a violation, else from the related turn. */
  readonly at: Difference | null;
  /** The verdict where whatever stands in a reply's place is its echo. */
  readonly verdict: Verdict;
  /** The verdict where only what says the same is. */
  readonly strictVerdict: Verdict;
}

/** What became of one turn. */
export interface TurnJudgement {
  /** The turn. */
  readonly turn: number;
  /** Its role. */
  readonly role: TurnRole;
  /** The decision on the request that made it. */
  readonly decision: Decision;
  /** Whether a later request echoes its reply. */
  readonly adopted: boolean;
  /** Whether it is never echoed while another sample of its prompt is. */
  readonly superseded: boolean;
  /** How often its answer was given again. */
  readonly replays: number;
}

/** What the policies say about a task. */
export interface Judgement {
  /** Whether the task is finished: before, later requests may change everything here. */
  readonly final: boolean;
  /** Whether the capture holds under the task's policy, and why not. */
  readonly capture: { readonly valid: boolean; readonly reason: string | null };
  /** The turns of the main line in order, along accepted echoes. */
  readonly mainLine: readonly number[];
  /** Every turn, by number. */
  readonly turns: readonly TurnJudgement[];
  /** Every request, in order. */
  readonly decisions: readonly Decision[];
  /** What a reader should know: `conversation_continued_elsewhere`, `another_root_went_on`, `main_selector_matched_nothing`. */
  readonly notes: readonly string[];
}

/** A verdict in the words of the HTTP contract. */
export function verdictText(verdict: Verdict): string {
  const reason = violationOf(verdict);
  return reason === null ? verdict.type : `violation: ${reason}`;
}

/** Why a verdict makes a capture invalid, in the words of the HTTP contract; null where it does not. */
export function violationOf(verdict: Verdict): string | null {
  switch (verdict.type) {
    case "ok":
    case "replay":
    case "side":
      return null;
    case "shrank":
      return "shrank";
    case "rewritten":
      return `rewritten at message ${verdict.message}`;
  }
}
