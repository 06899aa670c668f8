/** Leases and events in the KV store: writes without checks. It does not know when a lease has ended. */

import type { CallLease, TaskEvent, TaskRecord } from "../../core/task.ts";
import { decodeJson, type KvContext, listEntries, setOf } from "./kv_context.ts";
import { kvKeys } from "./kv_keys.ts";

/** Events that go into one write: so many of the largest fit. */
const EVENTS_PER_WRITE = 12;

/** What a write of this lease owns: put, renewal and removal keep their order. */
export function callClaim(uid: string, callId: string): string {
  return `call ${uid} ${callId}`;
}

export async function putKvCall(context: KvContext, task: TaskRecord, lease: CallLease): Promise<void> {
  await context.queue.commit({
    checks: [],
    sets: [setOf(context, { key: kvKeys.call(task.uid, lease.callId), value: lease, task })],
    deletes: [],
    claims: [callClaim(task.uid, lease.callId)],
  });
}

export async function removeKvCall(context: KvContext, uid: string, callId: string): Promise<void> {
  const deletes = [kvKeys.call(uid, callId)];
  await context.queue.commit({ checks: [], sets: [], deletes, claims: [callClaim(uid, callId)] });
}

export async function listKvCalls(context: KvContext, uid: string): Promise<CallLease[]> {
  const entries = await listEntries(context, { prefix: ["call", uid] }, {});
  return entries.map(({ value }) => decodeJson<CallLease>(value));
}

export async function putKvEvents(
  context: KvContext,
  task: TaskRecord,
  { events, mayLinger }: { events: readonly TaskEvent[]; mayLinger: boolean },
): Promise<void> {
  const sets = events.map((event) => setOf(context, { key: kvKeys.event(task.uid, event.ulid), value: event, task }));
  const writes: Promise<unknown>[] = [];
  for (let start = 0; start < sets.length; start += EVENTS_PER_WRITE) {
    const some = sets.slice(start, start + EVENTS_PER_WRITE);
    writes.push(context.queue.commit({ checks: [], sets: some, deletes: [], claims: [] }, { mayLinger }));
  }
  await Promise.all(writes);
}

export async function listKvEvents(context: KvContext, uid: string): Promise<TaskEvent[]> {
  const entries = await listEntries(context, { prefix: ["event", uid] }, {});
  return entries.map(({ value }) => decodeJson<TaskEvent>(value));
}
