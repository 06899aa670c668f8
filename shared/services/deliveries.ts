/** Whether the answers of turns went out whole, from the task's events. */

import type { TaskEvent } from "../core/task.ts";

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
