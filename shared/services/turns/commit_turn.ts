/** The commit of a turn: one atomic write against the task record, tried again while others commit. */

import { VerbatimError } from "../../core/errors.ts";
import type { KnownJson } from "../../core/growing_json.ts";
import type { Located } from "../../core/locate.ts";
import { turnHistory } from "../../core/record_history.ts";
import type { RequestUnits } from "../../core/request_units.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { TokenSeries } from "../../core/token_series.ts";
import type { Turn, TurnDetail } from "../../core/turn.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TaskStore, VersionedTask } from "../../ports/task_store.ts";
import { assertTurnLeft } from "../tasks/task_budget.ts";
import type { TaskView } from "./task_views.ts";

/** A turn before it has a number and a place in the history. */
export interface Uncommitted {
  readonly turn: Omit<Turn, "detail"> & { readonly detail: Omit<TurnDetail, "history"> };
  readonly units: RequestUnits;
  /** The request's body, to be kept for the next one. */
  readonly body: KnownJson | null;
  /** Where it belonged when it was rendered. */
  readonly located: Located | null;
  /** What it was sampled from. */
  readonly prompt: TokenSeries;
  /** As in the store port: the turn the repeat key must name, null for none, undefined for any. */
  readonly expectRepeat: number | null | undefined;
  readonly callId: string;
}

/** How a commit ended. */
export type CommitOutcome =
  | { readonly kind: "committed"; readonly turn: Turn }
  /** Another turn answers the same request. */
  | { readonly kind: "repeat_changed"; readonly turn: number };

const COMMIT_TRIES = 200;
const LONGEST_PAUSE_MS = 50;

/**
 * Commits under the next free number. A turn whose task was closed, dropped or replaced meanwhile is refused
 * (`task_closed`), and so is a turn too many (`budget_exceeded`). Turns are never removed, so a parent that stood still
 * stands. Its place in the history is the one among the turns before it, so a lost race finds it anew.
 */
export async function commitTurn(
  context: { readonly store: TaskStore; readonly clock: Clock; readonly view: TaskView },
  known: VersionedTask,
  uncommitted: Uncommitted,
): Promise<CommitOutcome> {
  const { store, clock, view } = context;
  const { units, turn: { record, detail } } = uncommitted;
  const { task } = known;
  for (let tries = 0; tries < COMMIT_TRIES; tries++) {
    // What is known already need not be read: if it holds no more, the commit is refused and tells so.
    const latest = tries === 0 ? latestKnown(view, known) : null;
    const read = assertTakesTurns(task, latest ?? await store.getTask(task.taskId), clock.now());
    await view.catchUp(store, read.task);
    const answer = view.repeats.get(record.digest);
    if (uncommitted.expectRepeat === null && answer !== undefined) return { kind: "repeat_changed", turn: answer };
    // Calls of other processes can be counted only now that they have become turns.
    assertTurnLeft(read.task, 0);
    const turn: Turn = {
      ...uncommitted.turn,
      record: { ...record, turn: read.task.turns },
      detail: { ...detail, history: turnHistory(view.forest, units, detail.reply, uncommitted) },
    };
    const next: TaskRecord = {
      ...read.task,
      turns: read.task.turns + 1,
      promptTokens: read.task.promptTokens + record.promptTokens,
      completionTokens: read.task.completionTokens + record.completionTokens,
    };
    const outcome = await store.appendTurn({
      read,
      next,
      turn,
      staged: await store.stageTurn(read.task, turn),
      expectRepeat: uncommitted.expectRepeat,
      callId: uncommitted.callId,
    });
    switch (outcome.kind) {
      case "committed":
        view.add(turn, uncommitted.prompt);
        view.keepRequest(turn.record.turn, { body: uncommitted.body, request: units });
        view.head = { task: next, version: outcome.version };
        return { kind: "committed", turn };
      case "repeat_changed":
        return outcome;
      case "task_changed":
        await clock.sleep(Math.min(tries, LONGEST_PAUSE_MS));
    }
  }
  throw new VerbatimError("busy", "The task is changing too fast to commit a turn", { retryAfterS: 1 });
}

/** The newer of two known records, if no turn is known beyond it. */
function latestKnown(view: TaskView, known: VersionedTask): VersionedTask | null {
  const { head } = view;
  const latest = head !== null && head.task.turns >= known.task.turns ? head : known;
  return latest.task.turns === view.turns.length ? latest : null;
}

function assertTakesTurns(task: TaskRecord, read: VersionedTask | null, nowMs: number): VersionedTask {
  const now = read?.task;
  const gone = now === undefined || now.uid !== task.uid;
  if (read !== null && !gone && nowMs < now.expiresAtMs && (now.status === "open" || now.status === "closing")) {
    return read;
  }
  const status = gone ? "gone" : nowMs >= now.expiresAtMs ? "expired" : now.status;
  throw new VerbatimError("task_closed", `The task "${task.taskId}" is ${status}: the turn is not committed`, {
    details: { status },
  });
}
