/** What every task store does with leases and events. */

import assert from "node:assert/strict";
import { createTask, eventOf, makeTask, START_MS } from "./store_fixtures.ts";
import type { Check } from "./task_store_contract.ts";

export const JOURNAL_CHECKS: Record<string, Check> = {
  "putCall writes and renews leases, removeCall ends them": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const lease = { callId: "b", digest: "d", rid: "r", startedAtMs: START_MS, untilMs: START_MS + 10 };
    await Promise.all([store.putCall(task, lease), store.putCall(task, { ...lease, callId: "a" })]);
    await store.putCall(task, { ...lease, untilMs: START_MS + 20 });
    assert.deepEqual(await store.listCalls(task.uid), [
      { ...lease, callId: "a" },
      { ...lease, untilMs: START_MS + 20 },
    ]);
    await Promise.all([store.removeCall(task.uid, "a"), store.removeCall(task.uid, "missing")]);
    assert.deepEqual((await store.listCalls(task.uid)).map(({ callId }) => callId), ["b"]);
    assert.deepEqual(await store.listCalls("no such uid"), []);
  },

  "putCall and removeCall of one lease keep their order": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const lease = { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 0 };
    const calls: Promise<void>[] = [];
    for (let renewal = 0; renewal < 20; renewal++) calls.push(store.putCall(task, { ...lease, untilMs: renewal }));
    calls.push(store.removeCall(task.uid, "c"));
    await Promise.all(calls);
    assert.deepEqual(await store.listCalls(task.uid), []);
  },

  "listEvents gives events in ulid order, whatever the order of writing": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const other = await createTask(store, makeTask());
    const events = Array.from({ length: 300 }, (_, index) => eventOf(String(1_000 + index), index));
    const writes = events.toReversed().map((event) => store.putEvents(task, [event]));
    writes.push(store.putEvents(other.task, events.slice(0, 40)), store.putEvents(task, []));
    await Promise.all(writes);
    assert.deepEqual(await store.listEvents(task.uid), events);
    assert.deepEqual(await store.listEvents(other.task.uid), events.slice(0, 40));
  },

  "flush resolves when what was accepted is written": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const written: string[] = [];
    for (let index = 0; index < 50; index++) {
      store.putEvents(task, [eventOf(String(100 + index), index)]).then(() => written.push("event"));
    }
    await store.flush();
    assert.equal((await store.listEvents(task.uid)).length, 50);
    assert.equal(written.length, 50);
  },
};
