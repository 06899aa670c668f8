/** Leases and events in Postgres. It does not know when a lease has ended. */

import type { CallLease, TaskEvent, TaskRecord } from "../../core/task.ts";
import { jsonText, type PgContext, textArray } from "./pg_context.ts";

/** Events that go into one statement. */
const EVENTS_PER_STATEMENT = 500;

/** Writes or renews a lease. Under a uid that is gone nothing is written: the lock on it keeps it from going meanwhile. */
export async function putPgCall(context: PgContext, task: TaskRecord, lease: CallLease): Promise<void> {
  const text = jsonText(lease, { what: "A lease", limit: context.limits.maxRecordBytes });
  await context.database.run(({ sql }) =>
    sql`
      insert into verbatim.calls (uid, call_id, lease)
      select uid, ${lease.callId}, ${text}::text::json from verbatim.uids where uid = ${task.uid} for key share
      on conflict (uid, call_id) do update set lease = excluded.lease
    `
  );
}

export async function removePgCall(context: PgContext, uid: string, callId: string): Promise<void> {
  await context.database.run(({ sql }) => sql`delete from verbatim.calls where uid = ${uid} and call_id = ${callId}`);
}

export async function listPgCalls(context: PgContext, uid: string): Promise<CallLease[]> {
  const rows = await context.database.run(({ sql }) =>
    sql<{ lease: CallLease }[]>`select lease from verbatim.calls where uid = ${uid} order by call_id`
  );
  return rows.map(({ lease }) => lease);
}

/** Appends events; one that is there already stays. */
export async function putPgEvents(context: PgContext, task: TaskRecord, events: readonly TaskEvent[]): Promise<void> {
  const limit = context.limits.maxRecordBytes;
  const texts = events.map((event) => jsonText(event, { what: "An event", limit }));
  for (let start = 0; start < events.length; start += EVENTS_PER_STATEMENT) {
    const end = start + EVENTS_PER_STATEMENT;
    const ulids = textArray(events.slice(start, end).map(({ ulid }) => ulid));
    const some = textArray(texts.slice(start, end));
    await context.database.run(({ sql }) =>
      sql`
        insert into verbatim.events (uid, ulid, event)
        select life.uid, given.ulid, given.event::json
        from (select uid from verbatim.uids where uid = ${task.uid} for key share) as life,
          unnest(${ulids}::text[], ${some}::text[]) as given (ulid, event)
        on conflict do nothing
      `
    );
  }
}

export async function listPgEvents(context: PgContext, uid: string): Promise<TaskEvent[]> {
  const rows = await context.database.run(({ sql }) =>
    sql<{ event: TaskEvent }[]>`select event from verbatim.events where uid = ${uid} order by ulid`
  );
  return rows.map(({ event }) => event);
}
