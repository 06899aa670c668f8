/** Task records, keys, groups and idempotency keys in Postgres. It does not know what a status allows. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { CreateTaskOutcome, ListTasks, VersionedTask } from "../../ports/task_store.ts";
import { nameHash, type PgContext, randomName } from "./pg_context.ts";
import { unlinkPgTask } from "./pg_removal.ts";
import { taskText, versionOfChange } from "./pg_task_change.ts";

/** How a creation ended, and the uids of expired tasks that stood in its way, whose remains are to be removed. */
export interface PgCreation {
  readonly outcome: CreateTaskOutcome;
  readonly removedUids: readonly string[];
}

interface TaskRow {
  readonly record: TaskRecord;
  readonly version: string;
}

/** Attempts of a creation that loses races; each lost race means that another creation won, or an expired task went. */
const CREATE_ATTEMPTS = 16;

/**
 * Creates a task in one statement, after a look at what stands in its way. An expired task there is removed first: it
 * counts as gone already. What another creation put there meanwhile is met by the next look.
 */
export async function createPgTask(
  context: PgContext,
  task: TaskRecord,
  options: { nowMs: number; idempotencyKey?: string },
): Promise<PgCreation> {
  const { nowMs, idempotencyKey } = options;
  const idempotency = idempotencyKey === undefined ? null : nameHash(idempotencyKey);
  const removedUids: string[] = [];
  for (let attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
    const found = await findInTheWay(context, task.taskId, idempotency);
    const own = found.find(({ record }) => record.taskId === task.taskId);
    // The same uid: this very creation, whose acknowledgement was lost.
    if (own?.record.uid === task.uid) return { outcome: { kind: "created", version: own.version }, removedUids };
    const living = found.filter(({ record }) => nowMs < record.expiresAtMs);
    const repeated = living.find(({ repeats }) => repeats);
    if (repeated !== undefined) return { outcome: { kind: "repeated", task: repeated.record }, removedUids };
    if (living.length > 0) return { outcome: { kind: "exists" }, removedUids };
    for (const { record } of found) if (await unlinkPgTask(context, record)) removedUids.push(record.uid);
    const version = await insertTask(context, task, idempotency);
    if (version !== null) return { outcome: { kind: "created", version }, removedUids };
  }
  throw new VerbatimError("not_ready", `Task ${task.taskId} is being created elsewhere; try again later.`, {
    retryAfterS: 1,
  });
}

/** The tasks of this id and of this idempotency key. */
async function findInTheWay(
  context: PgContext,
  taskId: string,
  idempotency: Uint8Array | null,
): Promise<readonly (TaskRow & { readonly repeats: boolean })[]> {
  return await context.database.run(({ sql }) =>
    sql<(TaskRow & { repeats: boolean })[]>`
      select record, version, coalesce(idempotency_hash = ${idempotency}::bytea, false) as repeats
      from verbatim.tasks
      where task_id = ${taskId} or idempotency_hash = ${idempotency}::bytea
    `
  );
}

/** The version, or null where another task has the id, the key or the idempotency key. */
async function insertTask(
  context: PgContext,
  task: TaskRecord,
  idempotency: Uint8Array | null,
): Promise<string | null> {
  const record = taskText(context, task, "change");
  const { groupId } = task.settings;
  const group = groupId === null ? null : nameHash(groupId);
  const [made] = await context.database.run(({ sql }) =>
    sql<{ version: string }[]>`
      with made as (
        insert into verbatim.tasks
          (task_id, uid, change_id, key_hash, group_hash, idempotency_hash, expires_at_ms, record)
        values (
          ${task.taskId}, ${task.uid}, ${task.uid}, ${task.keyHash}, ${group}::bytea, ${idempotency}::bytea,
          ${Math.ceil(task.expiresAtMs)}, ${record}::text::json
        )
        on conflict do nothing
        returning uid, version
      ), life as (
        insert into verbatim.uids (uid) select uid from made
      )
      select version from made
    `
  );
  return made?.version ?? null;
}

export async function getPgTask(context: PgContext, taskId: string): Promise<VersionedTask | null> {
  const [row] = await context.database.run(({ sql }) =>
    sql<TaskRow[]>`select record, version from verbatim.tasks where task_id = ${taskId}`
  );
  return versionedOf(row);
}

export async function getPgTaskByKey(context: PgContext, keyHash: string): Promise<VersionedTask | null> {
  const [row] = await context.database.run(({ sql }) =>
    sql<TaskRow[]>`select record, version from verbatim.tasks where key_hash = ${keyHash}`
  );
  return versionedOf(row);
}

export async function updatePgTask(context: PgContext, next: TaskRecord, version: string): Promise<string | null> {
  const record = taskText(context, next, "change");
  const changeId = randomName(context);
  return await context.database.run(async ({ sql, mayHaveRun }) => {
    const [row] = await sql<{ version: string }[]>`
      update verbatim.tasks
      set record = ${record}::text::json, version = nextval('verbatim.task_versions'), change_id = ${changeId}
      where task_id = ${next.taskId} and uid = ${next.uid} and version::text = ${version}
      returning version
    `;
    if (row !== undefined) return row.version;
    return mayHaveRun ? await versionOfChange(sql, next.taskId, changeId) : null;
  });
}

/** The cursor is the last task id of the page. */
export async function listPgTasks(
  context: PgContext,
  { groupId, limit, cursor = "" }: ListTasks,
): Promise<{ tasks: TaskRecord[]; cursor: string | null }> {
  const group = groupId === undefined ? null : nameHash(groupId);
  const rows = await context.database.run(({ sql }) =>
    sql<{ record: TaskRecord }[]>`
      select record from verbatim.tasks
      where task_id > ${cursor} ${group === null ? sql`` : sql`and group_hash = ${group}`}
      order by task_id limit ${limit + 1}
    `
  );
  const tasks = rows.slice(0, limit).map(({ record }) => record);
  return { tasks, cursor: rows.length > limit ? tasks.at(-1)?.taskId ?? null : null };
}

function versionedOf(row: TaskRow | undefined): VersionedTask | null {
  return row === undefined ? null : { task: row.record, version: row.version };
}
