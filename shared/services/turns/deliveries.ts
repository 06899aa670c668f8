/** Whether the answers of turns went out whole, from the task's events. */

import type { TaskEvent, TaskRecord } from "../../core/task.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { DELIVERY_WAIT_MS, type TaskView } from "./task_views.ts";

const POLL_MS = 50;

/** By turn: true once any sending went out whole, false where none did. A turn without an event is not in it. */
export function deliveries(events: readonly TaskEvent[]): Map<number, boolean> {
  const delivered = new Map<number, boolean>();
  for (const { type, turn } of events) {
    if (turn === null) continue;
    if (type === "delivered") delivered.set(turn, true);
    else if (type === "undelivered" && delivered.get(turn) !== true) delivered.set(turn, false);
  }
  return delivered;
}

/**
 * Whether a turn's answer went out whole. Where another process sends it, that process says so a moment after the answer
 * has left: the moment is waited for. A process that died says nothing, and its answer counts as not delivered.
 */
export async function wasDelivered(
  context: { readonly store: TaskStore; readonly clock: Clock },
  asked: {
    readonly task: TaskRecord;
    readonly view: TaskView;
    readonly turn: number;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const { store, clock } = context;
  const { task, view, turn, signal } = asked;
  const known = await view.deliveryOf(turn, clock);
  if (known !== null) return known;
  const { startedAtMs, durationMs } = view.turns[turn]!.record;
  const untilMs = startedAtMs + durationMs + DELIVERY_WAIT_MS;
  for (let waitedMs = 0;; waitedMs += POLL_MS) {
    const told = deliveries(await store.listEvents(task.uid)).get(turn);
    if (told !== undefined) return told;
    if (waitedMs >= DELIVERY_WAIT_MS || clock.now() >= untilMs) return false;
    await clock.sleep(POLL_MS, signal);
  }
}
