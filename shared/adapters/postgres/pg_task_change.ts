/** A change of a task's record: its text, and whether it happened. It does not know what changes. */

import type { TaskRecord } from "../../core/task.ts";
import { jsonText, type PgContext } from "./pg_context.ts";
import type { PgSql } from "./pg_database.ts";
import { RECORD_ROOM_BYTES } from "./pg_limits.ts";

/** The record as JSON. One that an append could make too large is refused when it is created or updated. */
export function taskText(context: PgContext, task: TaskRecord, cause: "change" | "append"): string {
  const limit = context.limits.maxRecordBytes - (cause === "append" ? 0 : RECORD_ROOM_BYTES);
  return jsonText(task, { what: `The record of task ${task.taskId}`, limit, code: "body_too_large" });
}

/** The version that a change made whose acknowledgement was lost, or null where it did not happen. */
export async function versionOfChange(
  sql: PgSql,
  taskId: string,
  changeId: string,
): Promise<string | null> {
  const [row] = await sql<{ version: string }[]>`
    select version from verbatim.tasks where task_id = ${taskId} and change_id = ${changeId}
  `;
  return row?.version ?? null;
}
