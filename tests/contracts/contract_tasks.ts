/** What every task store does with task records, keys, groups, drops and sweeps. */

import assert from "node:assert/strict";
import type { TaskRecord } from "../../shared/core/task.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import {
  appendTurn,
  assertSameTurn,
  createTask,
  eventOf,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
  taskAfter,
  TTL_MS,
} from "./store_fixtures.ts";
import type { Check } from "./task_store_contract.ts";

export const TASK_CHECKS: Record<string, Check> = {
  "rootSecret is 32 bytes, always the same": async ({ store }) => {
    const secrets = await Promise.all([store.rootSecret(), store.rootSecret(), store.rootSecret()]);
    const first = secrets[0].slice();
    assert.equal(first.length, 32);
    secrets[0].fill(0);
    assert.deepEqual(secrets[1], first);
    assert.deepEqual(await store.rootSecret(), first);
  },

  "createTask makes a task that its id and its key find": async ({ store }) => {
    const task = makeTask({ groupId: "g" });
    const created = await createTask(store, task);
    assert.deepEqual(await store.getTask(task.taskId), created);
    assert.deepEqual(await store.getTaskByKey(task.keyHash), created);
    assert.equal(await store.getTask("nobody"), null);
    assert.equal(await store.getTaskByKey("0".repeat(64)), null);
  },

  "createTask says exists while the id is in use, whatever its status": async ({ store }) => {
    const read = await createTask(store, makeTask());
    const again = makeTask({ taskId: read.task.taskId });
    const lastMs = read.task.expiresAtMs - 1;
    assert.deepEqual(await store.createTask(again, { nowMs: lastMs }), { kind: "exists" });
    const version = await store.updateTask({ ...read.task, status: "finished" }, read.version);
    assert.deepEqual(await store.createTask(again, { nowMs: lastMs }), { kind: "exists" });
    await store.dropTask({ ...read.task, status: "dropped" }, version!);
    assert.deepEqual(await store.createTask(again, { nowMs: lastMs }), { kind: "exists" });
    assert.equal((await mustGet(store, read.task.taskId)).task.uid, read.task.uid);
    assert.equal(await store.getTaskByKey(again.keyHash), null);
  },

  "createTask takes the place of an expired task, whose data is out of reach and removed": async (opened) => {
    const { store } = opened;
    const old = await createTask(store, makeTask({ groupId: "first group" }));
    const turn = makeTurn(0, { completion: manyIds(90_000, 1) });
    await store.putCall(old.task, { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 1 });
    const after = await mustAppend(store, old, { turn });
    const taskId = old.task.taskId;
    const next = makeTask({ taskId, groupId: "second group", expiresAtMs: START_MS + 2 * TTL_MS });
    const outcome = await store.createTask(next, { nowMs: old.task.expiresAtMs });
    assert.equal(outcome.kind, "created");
    assert.deepEqual((await mustGet(store, taskId)).task, next);
    assert.equal((await store.getTaskByKey(next.keyHash))?.task.uid, next.uid);
    assert.equal(await store.getTaskByKey(old.task.keyHash), null);
    assert.equal(await store.updateTask(after.task, after.version), null);
    assert.deepEqual(await appendTurn(store, after, { turn: makeTurn(1) }), { kind: "task_changed" });
    assert.equal(await store.getRepeat(next.uid, turn.record.digest), null);
    assert.deepEqual((await store.listTasks({ groupId: "first group", limit: 5 })).tasks, []);
    assert.deepEqual((await store.listTasks({ groupId: "second group", limit: 5 })).tasks, [next]);
    await store.flush();
    await assert.rejects(store.readTurns(after.task, 0, 1), { code: "internal" });
    assert.equal(await store.getRepeat(old.task.uid, turn.record.digest), null);
    assert.deepEqual(await store.listCalls(old.task.uid), []);
    assert.equal(await opened.residue?.(old.task.uid) ?? 0, 0);
  },

  "createTask keeps the index of a group that the expired task was in too": async ({ store }) => {
    const old = await createTask(store, makeTask({ groupId: "same" }));
    const next = makeTask({ taskId: old.task.taskId, groupId: "same" });
    await store.createTask(next, { nowMs: old.task.expiresAtMs });
    assert.deepEqual((await store.listTasks({ groupId: "same", limit: 5 })).tasks, [next]);
  },

  "createTask repeats the task of an idempotency key until it expires": async ({ store }) => {
    const idempotencyKey = "k".repeat(3_000);
    const task = makeTask();
    assert.equal((await store.createTask(task, { nowMs: START_MS, idempotencyKey })).kind, "created");
    const nowMs = task.expiresAtMs - 1;
    const repeated = { kind: "repeated", task };
    assert.deepEqual(await store.createTask(makeTask({ taskId: task.taskId }), { nowMs, idempotencyKey }), repeated);
    assert.deepEqual(await store.createTask(makeTask(), { nowMs, idempotencyKey }), repeated);
    assert.equal((await store.createTask(makeTask(), { nowMs, idempotencyKey: "another" })).kind, "created");
    const later = makeTask({ expiresAtMs: START_MS + 2 * TTL_MS });
    const free = { nowMs: task.expiresAtMs, idempotencyKey };
    assert.equal((await store.createTask(later, free)).kind, "created");
    assert.deepEqual(await store.createTask(makeTask(), free), { kind: "repeated", task: later });
  },

  "createTask repeats no task that took the id of the one made under the key": async ({ store }) => {
    const task = makeTask();
    await store.createTask(task, { nowMs: START_MS, idempotencyKey: "once" });
    const other = makeTask({ taskId: task.taskId, expiresAtMs: START_MS + 2 * TTL_MS });
    assert.equal((await store.createTask(other, { nowMs: task.expiresAtMs })).kind, "created");
    const third = makeTask({ expiresAtMs: START_MS + 2 * TTL_MS });
    const outcome = await store.createTask(third, { nowMs: task.expiresAtMs, idempotencyKey: "once" });
    assert.equal(outcome.kind, "created");
  },

  "updateTask writes at the version read and never at another": async ({ store }) => {
    const { task, version } = await createTask(store, makeTask());
    const closing: TaskRecord = { ...task, status: "closing", reward: { style: 0.25, total: -1e-300 } };
    const next = await store.updateTask(closing, version);
    assert.ok(next !== null && next !== version);
    assert.equal(await store.updateTask({ ...task, status: "finished" }, version), null);
    assert.deepEqual(await store.getTask(task.taskId), { task: closing, version: next });
    assert.equal(await store.updateTask(makeTask(), version), null);
  },

  "listTasks goes by id in pages, over all and over one group": async ({ store }) => {
    const ids = Array.from({ length: 23 }, (_, index) => `list-${String(index).padStart(2, "0")}`);
    const shuffled = ids.toSorted((left, right) => left.slice(-1) < right.slice(-1) ? 1 : -1);
    for (const taskId of shuffled) {
      await createTask(
        store,
        makeTask({ taskId, groupId: Number(taskId.slice(5)) % 2 === 0 ? "even" : "x".repeat(900) }),
      );
    }
    await createTask(store, makeTask({ taskId: "list-05.1" }));
    assert.deepEqual(await idsOf(store, { limit: 5 }), [...ids.slice(0, 6), "list-05.1", ...ids.slice(6)]);
    assert.deepEqual(await idsOf(store, { limit: 12, groupId: "even" }), ids.filter((_, index) => index % 2 === 0));
    assert.deepEqual(await idsOf(store, { limit: 11, groupId: "x".repeat(900) }), ids.filter((_, i) => i % 2 === 1));
    assert.deepEqual(await store.listTasks({ groupId: "none", limit: 5 }), { tasks: [], cursor: null });
    assert.equal((await store.listTasks({ limit: 24 })).cursor, null);
  },

  "dropTask leaves a tombstone and removes the rest": async (opened) => {
    const { store } = opened;
    let read = await createTask(store, makeTask({ groupId: "dropped" }));
    const stale = read.version;
    read = await mustAppend(store, read, { turn: makeTurn(0, { digest: "d" }) });
    read = await mustAppend(store, read, { turn: makeTurn(1, { completion: manyIds(70_000, 9) }) });
    await store.putCall(read.task, { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 1 });
    await store.putEvents(read.task, [eventOf("1", 0)]);
    const orphan = await store.stageTurn(read.task, makeTurn(2, { completion: manyIds(90_000, 3) }));
    const dropped: TaskRecord = { ...read.task, status: "dropped", closedAtMs: START_MS };
    assert.equal(await store.dropTask(dropped, stale), false);
    assert.equal((await store.getTaskByKey(read.task.keyHash))?.version, read.version);
    assert.equal(await store.dropTask(dropped, read.version), true);
    assert.deepEqual((await mustGet(store, read.task.taskId)).task, dropped);
    assert.equal(await store.getTaskByKey(read.task.keyHash), null);
    assert.equal(await store.getRepeat(read.task.uid, "d"), null);
    assert.deepEqual(await store.listCalls(read.task.uid), []);
    assert.deepEqual(await store.listEvents(read.task.uid), []);
    await assert.rejects(store.readTurns(read.task, 0, 1), { code: "internal" });
    const turn = makeTurn(2);
    const late = { read, next: taskAfter(read.task, turn), turn, staged: orphan, expectRepeat: null, callId: "c" };
    assert.deepEqual(await store.appendTurn(late), { kind: "task_changed" });
    assert.deepEqual((await mustGet(store, read.task.taskId)).task, dropped);
    assert.deepEqual((await store.listTasks({ groupId: "dropped", limit: 5 })).tasks, [dropped]);
    assert.equal(await opened.residue?.(read.task.uid) ?? 0, 0);
  },

  "sweep removes expired tasks and no others": async (opened) => {
    const { store } = opened;
    const nowMs = START_MS + TTL_MS;
    const living = await createTask(store, makeTask({ groupId: "s", expiresAtMs: nowMs + 1 }));
    const task = makeTask({ groupId: "s" });
    await store.createTask(task, { nowMs: START_MS, idempotencyKey: "swept" });
    const expired = await mustAppend(store, await mustGet(store, task.taskId), { turn: makeTurn(0) });
    const dropped = await createTask(store, makeTask());
    await store.dropTask({ ...dropped.task, status: "dropped" }, dropped.version);
    assert.equal(await store.sweep(nowMs - 1), 0);
    assert.deepEqual((await store.listTasks({ limit: 9 })).tasks.length, 3);
    assert.equal(await store.sweep(nowMs), 2);
    assert.equal(await store.sweep(nowMs), 0);
    assert.deepEqual((await store.listTasks({ limit: 9 })).tasks, [living.task]);
    assert.deepEqual((await store.listTasks({ groupId: "s", limit: 9 })).tasks, [living.task]);
    assert.equal(await store.getTaskByKey(task.keyHash), null);
    assert.equal(await opened.residue?.(expired.task.uid) ?? 0, 0);
    const again = makeTask({ taskId: task.taskId, expiresAtMs: nowMs + TTL_MS });
    assert.equal((await store.createTask(again, { nowMs, idempotencyKey: "swept" })).kind, "created");
  },

  "everything goes in and out as a copy": async ({ store }) => {
    const metadata: TaskRecord["finishMetadata"] = { list: [1] };
    const task = makeTask({ finishMetadata: metadata });
    let read = await createTask(store, task);
    (metadata.list as number[]).push(2);
    const first = await mustGet(store, task.taskId);
    assert.deepEqual(first.task.finishMetadata, { list: [1] });
    (first.task.finishMetadata.list as number[]).push(3);
    assert.deepEqual((await mustGet(store, task.taskId)).task.finishMetadata, { list: [1] });
    const turn = makeTurn(0);
    read = await mustAppend(store, { task: { ...task, finishMetadata: {} }, version: read.version }, { turn });
    const kept = structuredClone(turn);
    turn.completion.fill(0);
    turn.logprobs.fill(0);
    const [stored] = await store.readTurns(read.task, 0, 1);
    assertSameTurn(stored, kept);
    stored!.observation.fill(0);
    assertSameTurn((await store.readTurns(read.task, 0, 1))[0], kept);
  },

  "close lets what began end, and refuses what comes later": async ({ store }) => {
    const read = await createTask(store, makeTask());
    const turn = makeTurn(0);
    const staged = await store.stageTurn(read.task, turn);
    const next = taskAfter(read.task, turn);
    const appending = store.appendTurn({ read, next, turn, staged, expectRepeat: null, callId: "c" });
    await store.close();
    assert.equal((await appending).kind, "committed");
    await assert.rejects(store.getTask(read.task.taskId), { code: "not_ready", retryAfterS: 1 });
    await assert.rejects(store.putEvents(read.task, []), { code: "not_ready" });
    await store.close();
  },
};

async function idsOf(store: TaskStore, query: { limit: number; groupId?: string }): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < 100; page++) {
    const listed: { tasks: TaskRecord[]; cursor: string | null } = await store.listTasks(
      cursor === null ? query : { ...query, cursor },
    );
    assert.ok(listed.tasks.length <= query.limit);
    ids.push(...listed.tasks.map(({ taskId }) => taskId));
    cursor = listed.cursor;
    if (cursor === null) return ids;
  }
  throw new Error("the list has no end");
}
