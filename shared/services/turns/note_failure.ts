/** What a failed call leaves: its place, by which its retry is told from a new request. */

import type { Json } from "../../core/message.ts";
import { requestHistory } from "../../core/record_history.ts";
import type { RequestUnits } from "../../core/request_units.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import type { TaskService } from "../tasks/task_service.ts";
import type { TaskViews } from "./task_views.ts";

/** Most bytes of a place, as JSON, that are kept; a KV value holds 64 KiB. */
const MOST_PLACE_BYTES = 48_000;

/** Writes the event. A place too large to keep is left out, and the retry then reads as what it is without it. */
export async function noteFailure(
  context: { readonly store: TaskStore; readonly tasks: TaskService; readonly views: TaskViews },
  failed: { readonly units: RequestUnits; readonly task: TaskRecord; readonly code: string },
): Promise<void> {
  const { store, tasks, views } = context;
  const { units, task, code } = failed;
  const view = await views.of(task);
  if (code === "task_closed" || !view.noteFailure()) return;
  const text = JSON.stringify(requestHistory(view.forest, units));
  const history: Json = new TextEncoder().encode(text).length <= MOST_PLACE_BYTES ? JSON.parse(text) : null;
  await store.putEvents(task, [tasks.event("failed", null, { code, after: view.turns.length, history })]);
}
