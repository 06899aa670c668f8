/**
 * Removing tasks from Postgres. One statement makes a task's data unreachable and marks its uid; the rest goes in
 * batches, and the uid last. A removal that was cut short is found by its mark and goes on.
 */

import type { TaskRecord } from "../../core/task.ts";
import { type PgContext, randomName } from "./pg_context.ts";
import { taskText, versionOfChange } from "./pg_task_change.ts";

/** Tasks that one statement of a sweep takes. */
const SWEEP_TASKS = 200;
/** Turns that one statement removes: they are large. */
const REMOVE_TURNS = 100;
/** Parts of blobs that one statement removes: each is some megabytes. */
const REMOVE_PARTS = 20;
/** Other rows that one statement removes. */
const REMOVE_ROWS = 2_000;
const UIDS_PAGE = 100;

/** The record becomes a tombstone and the key is gone, or nothing happens and the answer is false. */
export async function entombPgTask(context: PgContext, dropped: TaskRecord, version: string): Promise<boolean> {
  const record = taskText(context, dropped, "append");
  const changeId = randomName(context);
  return await context.database.run(async ({ sql, mayHaveRun }) => {
    const rows = await sql`
      with entombed as (
        update verbatim.tasks
        set record = ${record}::text::json, version = nextval('verbatim.task_versions'), change_id = ${changeId},
          key_hash = null
        where task_id = ${dropped.taskId} and uid = ${dropped.uid} and version::text = ${version}
        returning uid
      ), marked as (
        update verbatim.uids set removed = true from entombed where uids.uid = entombed.uid
      )
      select uid from entombed
    `;
    if (rows.length > 0) return true;
    return mayHaveRun && await versionOfChange(sql, dropped.taskId, changeId) !== null;
  });
}

/** Removes an expired task's record and with it all that leads to it. False where it was gone already. */
export async function unlinkPgTask(context: PgContext, task: TaskRecord): Promise<boolean> {
  const rows = await context.database.run(({ sql }) =>
    sql`
      with gone as (
        delete from verbatim.tasks where task_id = ${task.taskId} and uid = ${task.uid} returning uid
      ), marked as (
        update verbatim.uids set removed = true from gone where uids.uid = gone.uid
      )
      select uid from gone
    `
  );
  return rows.length > 0;
}

/**
 * Removes everything under a uid, then the uid. May run twice at once, and again after a part of it. What is written
 * under it meanwhile goes with the uid itself, and nothing can be written after that.
 */
export async function removePgRemains(context: PgContext, uid: string): Promise<void> {
  const { database } = context;
  await inBatches(REMOVE_TURNS, () =>
    database.run(({ sql }) =>
      sql`
        delete from verbatim.turns where uid = ${uid} and turn < ${REMOVE_TURNS}::integer + (
          select min(turn) from verbatim.turns where uid = ${uid}
        )
      `
    ));
  await inBatches(REMOVE_TURNS, () =>
    database.run(({ sql }) =>
      sql`
        delete from verbatim.scores where uid = ${uid} and (teacher, turn) in (
          select teacher, turn from verbatim.scores where uid = ${uid} order by teacher, turn limit ${REMOVE_TURNS}
        )
      `
    ));
  await inBatches(REMOVE_PARTS, () =>
    database.run(({ sql }) =>
      sql`
        delete from verbatim.blobs where uid = ${uid} and (name, part) in (
          select name, part from verbatim.blobs where uid = ${uid} order by name, part limit ${REMOVE_PARTS}
        )
      `
    ));
  await inBatches(REMOVE_ROWS, () =>
    database.run(({ sql }) =>
      sql`
        delete from verbatim.repeats where uid = ${uid} and digest in (
          select digest from verbatim.repeats where uid = ${uid} order by digest limit ${REMOVE_ROWS}
        )
      `
    ));
  await inBatches(REMOVE_ROWS, () =>
    database.run(({ sql }) =>
      sql`
        delete from verbatim.events where uid = ${uid} and ulid in (
          select ulid from verbatim.events where uid = ${uid} order by ulid limit ${REMOVE_ROWS}
        )
      `
    ));
  await database.run(({ sql }) => sql`delete from verbatim.uids where uid = ${uid}`);
}

/** Runs a statement until it removes fewer rows than it might. */
async function inBatches(size: number, remove: () => Promise<{ readonly count: number }>): Promise<void> {
  for (;;) if ((await remove()).count < size) return;
}

/** Removes tasks that expired at `nowMs` or before, and ends removals that were cut short. The number of tasks removed. */
export async function sweepPg(context: PgContext, nowMs: number): Promise<number> {
  let removed = 0;
  for (;;) {
    const gone = await unlinkExpired(context, nowMs);
    removed += gone;
    if (gone < SWEEP_TASKS) break;
  }
  let after = "";
  for (;;) {
    const uids = await markedUids(context, after);
    for (const uid of uids) await removePgRemains(context, uid);
    if (uids.length < UIDS_PAGE) return removed;
    after = uids.at(-1)!;
  }
}

/** Tasks that another sweep has in hand are left to it. */
async function unlinkExpired(context: PgContext, nowMs: number): Promise<number> {
  const [row] = await context.database.run(({ sql }) =>
    sql<{ gone: number }[]>`
      with expired as (
        select task_id from verbatim.tasks where expires_at_ms <= ${Math.floor(nowMs)}
        order by expires_at_ms limit ${SWEEP_TASKS} for update skip locked
      ), gone as (
        delete from verbatim.tasks using expired where tasks.task_id = expired.task_id returning tasks.uid
      ), marked as (
        update verbatim.uids set removed = true from gone where uids.uid = gone.uid
      )
      select count(*)::integer as gone from gone
    `
  );
  return row!.gone;
}

async function markedUids(context: PgContext, after: string): Promise<string[]> {
  const rows = await context.database.run(({ sql }) =>
    sql<{ uid: string }[]>`
      select uid from verbatim.uids where removed and uid > ${after} order by uid limit ${UIDS_PAGE}
    `
  );
  return rows.map(({ uid }) => uid);
}
