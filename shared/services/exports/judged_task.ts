/** A task with its turns read and its history judged. */

import { type Forest, forestOf, type HistoryEvent } from "../../core/forest.ts";
import type { Judgement } from "../../core/judgement.ts";
import type { TaskEvent, TaskRecord } from "../../core/task.ts";
import type { Turn } from "../../core/turn.ts";
import type { RequestHistory } from "../../core/turn_history.ts";
import { judge } from "../../core/verdict.ts";
import { turnsBeyondSpan } from "../../core/version_span.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { deliveries } from "../turns/deliveries.ts";
import type { TaskViews } from "../turns/task_views.ts";

/** What is known of a task. */
export interface JudgedTask {
  readonly task: TaskRecord;
  /** By number. */
  readonly turns: readonly Turn[];
  readonly forest: Forest;
  readonly judgement: Judgement;
  /** Turns beyond the versions of weights that the task may span. */
  readonly stale: ReadonlySet<number>;
  /** Whether each turn's answer went out whole; absent where nothing says so yet. */
  readonly delivered: ReadonlyMap<number, boolean>;
}

/** Reads a task's turns and events and judges them. Verdicts are final once the task is finished. */
export async function judgeTask(
  context: { readonly store: TaskStore; readonly views: TaskViews },
  task: TaskRecord,
): Promise<JudgedTask> {
  const [view, events] = await Promise.all([context.views.of(task), context.store.listEvents(task.uid)]);
  const turns = view.turns.slice(0, task.turns);
  const forest = forestOf(
    turns.map(({ record, detail }) => ({ parent: record.parent, history: detail.history })),
    events.flatMap((event) => historyEvent(event, turns.length)),
  );
  const { history, echo, main, maxVersionSpan } = task.settings;
  const judgement = judge(forest, { history, echo, final: task.status === "finished", hasSelector: main !== null });
  const stale = turnsBeyondSpan(turns.map((turn) => turn.record), maxVersionSpan);
  return { task, turns, forest, judgement, stale, delivered: deliveries(events) };
}

/**
 * What the history knows of an event; nothing of those that only speak of deliveries, nor of those that came after the
 * record was read: they may speak of turns it does not count yet.
 */
function historyEvent(event: TaskEvent, turns: number): HistoryEvent[] {
  const { after } = event.detail;
  if (typeof after !== "number" || after > turns) return [];
  if (event.type === "replayed" && event.turn !== null && event.turn < turns) {
    return [{ type: "replayed", turn: event.turn, after }];
  }
  const { history } = event.detail;
  return event.type === "failed" && isHistory(history) ? [{ type: "failed", history, after }] : [];
}

/** Events are our own words: what stands under `history` was put there by the recorder. */
function isHistory(value: unknown): value is RequestHistory {
  return typeof value === "object" && value !== null && "toolsDigest" in value && "units" in value;
}
