import assert from "node:assert/strict";
import { makeTask } from "../../../tests/contracts/store_fixtures.ts";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { createRandomIds } from "../../adapters/random_ids.ts";
import { hashKey } from "../../core/hash_key.ts";
import type { Reward, TaskRecord } from "../../core/task.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { type FinishRequest, TaskService } from "./task_service.ts";

const TTL_MS = 1000;

interface World {
  readonly clock: FakeClock;
  readonly store: TaskStore;
  readonly tasks: TaskService;
  /** Creates an open task. */
  open(): Promise<TaskRecord>;
}

function worldOf(wrap: (store: TaskStore) => TaskStore = (store) => store): World {
  const clock = createFakeClock();
  const store = wrap(createMemoryStore());
  const tasks = new TaskService({ store, clock, ids: createRandomIds(clock), defaultTtlMs: TTL_MS });
  return { clock, store, tasks, open: async () => (await tasks.create(creation())).task };
}

function creation(changes: Partial<Parameters<TaskService["create"]>[0]> = {}): Parameters<TaskService["create"]>[0] {
  const settings = { ...makeTask().settings, routingKey: null };
  return { taskId: null, settings, ttlMs: null, idempotencyKey: null, ...changes };
}

function finish(changes: Partial<FinishRequest> = {}): FinishRequest {
  return { outcome: null, cause: null, reward: null, metadata: {}, ...changes };
}

Deno.test("TaskService.create makes an open task that its key opens", async () => {
  const { tasks, clock } = worldOf();
  const { task, key } = await tasks.create(creation());
  assert.match(task.taskId, /^task_[0-9A-Z]{26}$/);
  assert.match(task.uid, /^[0-9a-f]{32}$/);
  assert.equal(task.keyHash, hashKey(key));
  assert.equal(task.settings.routingKey, task.taskId);
  assert.equal(task.expiresAtMs, clock.now() + TTL_MS);
  assert.deepEqual((await tasks.ofKey(hashKey(key)))?.task, task);
  assert.equal(await tasks.ofKey(hashKey("other")), null);
  const named = await tasks.create(creation({ taskId: "mine", ttlMs: 5, agentKey: "agent" }));
  assert.deepEqual([named.task.taskId, named.key, named.task.expiresAtMs], ["mine", "agent", clock.now() + 5]);
  assert.equal((await tasks.ofKey(hashKey("agent")))?.task.uid, named.task.uid);
});

Deno.test("TaskService.create refuses an id in use until its task has expired", async () => {
  const { tasks, clock } = worldOf();
  const first = await tasks.create(creation({ taskId: "t" }));
  await tasks.close("t", finish());
  await assert.rejects(tasks.create(creation({ taskId: "t" })), { code: "task_exists", details: { task_id: "t" } });
  await clock.advance(TTL_MS);
  const second = await tasks.create(creation({ taskId: "t" }));
  assert.notEqual(second.task.uid, first.task.uid);
  assert.notEqual(second.key, first.key);
  assert.equal(await tasks.ofKey(hashKey(first.key)), null);
});

Deno.test("TaskService.create answers an idempotency key again as it did first", async () => {
  const { tasks } = worldOf();
  const first = await tasks.create(creation({ idempotencyKey: "i" }));
  const again = await tasks.create(creation({ idempotencyKey: "i" }));
  assert.deepEqual(again, { ...first, created: false });
  assert.deepEqual(await tasks.create(creation({ idempotencyKey: "i", taskId: first.task.taskId })), again);
  assert.notDeepEqual(await tasks.create(creation({ idempotencyKey: "j" })), first);
});

Deno.test("TaskService.create refuses an idempotency key that was used for another task", async () => {
  const { tasks } = worldOf();
  const first = creation({ idempotencyKey: "i" });
  await tasks.create(first);
  for (
    const other of [{ ...first, taskId: "other" }, { ...first, settings: { ...first.settings, groupId: "other" } }]
  ) {
    await assert.rejects(tasks.create(other), { code: "conflict" });
  }
});

Deno.test("TaskService shows an expired task to nobody, and an unknown one as unknown", async () => {
  const { tasks, clock } = worldOf();
  const { task, key } = await tasks.create(creation());
  const { taskId } = task;
  await clock.advance(TTL_MS - 1);
  assert.equal((await tasks.getReadable(taskId)).task.status, "open");
  await clock.advance(1);
  assert.equal(tasks.statusOf((await tasks.get(taskId)).task), "expired");
  const expired = { code: "task_not_found", details: { task_id: taskId, status: "expired" } };
  for (
    const use of [
      tasks.getReadable(taskId),
      tasks.startClosing(taskId),
      tasks.close(taskId, finish()),
      tasks.reward(taskId, { reward: 1, outcome: null, perTurn: null }),
      tasks.drop(taskId),
    ]
  ) await assert.rejects(use, expired);
  assert.equal(await tasks.ofKey(hashKey(key)), null);
  await assert.rejects(tasks.get("none"), { code: "task_not_found", details: { task_id: "none" } });
});

Deno.test("TaskService.startClosing closes an open task to new calls, and changes no other", async () => {
  const { tasks, open } = worldOf();
  const { taskId } = await open();
  assert.equal((await tasks.startClosing(taskId)).status, "closing");
  assert.equal((await tasks.startClosing(taskId)).status, "closing");
  await tasks.close(taskId, finish());
  assert.equal((await tasks.startClosing(taskId)).status, "finished");
});

Deno.test("TaskService.close writes how the task ended, once", async () => {
  const { tasks, store, clock, open } = worldOf();
  const { taskId, uid } = await open();
  const request = finish({ outcome: "failed", cause: "why", reward: 0.5, metadata: { a: 1 } });
  const { task, closedNow } = await tasks.close(taskId, request);
  assert.ok(closedNow);
  assert.deepEqual(
    [task.status, task.outcome, task.cause, task.reward, task.finishMetadata, task.closedAtMs],
    ["finished", "failed", "why", 0.5, { a: 1 }, clock.now()],
  );
  await clock.advance(5);
  assert.deepEqual(await tasks.close(taskId, request), { task, closedNow: false });
  assert.deepEqual(await tasks.close(taskId, finish()), { task, closedNow: false });
  assert.deepEqual((await store.listEvents(uid)).map(({ type }) => type), ["finished"]);
});

Deno.test("TaskService.close without an outcome is completed", async () => {
  const { tasks, open } = worldOf();
  assert.equal((await tasks.close((await open()).taskId, finish())).task.outcome, "completed");
});

Deno.test("TaskService.close again with another reward or outcome is a conflict", async () => {
  const { tasks, open } = worldOf();
  const rewards: [Reward, Reward][] = [[1, 0], [1, { a: 1 }], [{ a: 1, b: 2 }, { a: 1 }], [{ a: 1 }, { a: 2 }]];
  for (const [first, second] of rewards) {
    const { taskId } = await open();
    await tasks.close(taskId, finish({ reward: first }));
    await assert.rejects(tasks.close(taskId, finish({ reward: second })), {
      code: "conflict",
      details: { reward: first },
    });
    await assert.rejects(tasks.close(taskId, finish({ outcome: "infra" })), { code: "conflict" });
  }
});

Deno.test("TaskService.close takes named rewards for the same in any order", async () => {
  const { tasks, open } = worldOf();
  const { taskId } = await open();
  await tasks.close(taskId, finish({ reward: { a: 1, b: 2 } }));
  assert.equal((await tasks.close(taskId, finish({ reward: { b: 2, a: 1 } }))).closedNow, false);
});

Deno.test("TaskService.close keeps a reward and an outcome that were set before", async () => {
  const { tasks, open } = worldOf();
  const { taskId } = await open();
  await tasks.reward(taskId, { reward: { a: 1 }, outcome: "truncated", perTurn: null });
  const { task } = await tasks.close(taskId, finish());
  assert.deepEqual([task.reward, task.outcome], [{ a: 1 }, "truncated"]);
  const other = await open();
  await tasks.reward(other.taskId, { reward: 1, outcome: "truncated", perTurn: null });
  const { task: closed } = await tasks.close(other.taskId, finish({ reward: 2, outcome: "failed" }));
  assert.deepEqual([closed.reward, closed.outcome], [2, "failed"]);
});

Deno.test("TaskService.reward sets and replaces, turn by turn, before and after the finish", async () => {
  const { tasks, store, open } = worldOf();
  const opened = await open();
  const { version } = await tasks.get(opened.taskId);
  await store.updateTask({ ...opened, turns: 3 }, version);
  await tasks.reward(opened.taskId, { reward: 1, outcome: null, perTurn: { "0": 0.1, "2": 0.2 } });
  await tasks.close(opened.taskId, finish());
  const task = await tasks.reward(opened.taskId, { reward: 2, outcome: "failed", perTurn: { "2": 0.3 } });
  assert.deepEqual(
    [task.reward, task.outcome, task.perTurnRewards],
    [2, "failed", { "0": 0.1, "2": 0.3 }],
  );
  assert.deepEqual((await tasks.get(opened.taskId)).task, task);
  for (const turn of ["3", "02", "-1", "1.5", ""]) {
    const unknown = tasks.reward(opened.taskId, { reward: 5, outcome: null, perTurn: { "1": 1, [turn]: 1 } });
    await assert.rejects(unknown, { code: "turn_not_found", details: { field: `per_turn.${turn}`, turns: 3 } });
  }
  assert.deepEqual((await tasks.get(opened.taskId)).task, task);
});

Deno.test("TaskService.drop ends task and key for good", async () => {
  const { tasks, clock } = worldOf();
  const { task: { taskId }, key } = await tasks.create(creation());
  const dropped = await tasks.drop(taskId);
  assert.deepEqual([dropped.status, dropped.closedAtMs], ["dropped", clock.now()]);
  assert.deepEqual(await tasks.drop(taskId), dropped);
  assert.equal(await tasks.ofKey(hashKey(key)), null);
  assert.equal(tasks.statusOf((await tasks.get(taskId)).task), "dropped");
  const gone = { code: "task_not_found", details: { task_id: taskId, status: "dropped" } };
  await assert.rejects(tasks.close(taskId, finish()), gone);
  await assert.rejects(tasks.reward(taskId, { reward: 1, outcome: null, perTurn: null }), gone);
});

Deno.test("TaskService tries again while others change the task, but not for ever", async () => {
  let losses = 0;
  const losing = (store: TaskStore): TaskStore => ({
    ...bound(store),
    updateTask: (next, version) => losses-- > 0 ? Promise.resolve(null) : store.updateTask(next, version),
    dropTask: (next, version) => losses-- > 0 ? Promise.resolve(false) : store.dropTask(next, version),
  });
  const { tasks, open } = worldOf(losing);
  const { taskId } = await open();
  losses = 10;
  assert.equal((await tasks.startClosing(taskId)).status, "closing");
  losses = Infinity;
  await assert.rejects(tasks.close(taskId, finish()), { code: "busy", retryAfterS: 1 });
  await assert.rejects(tasks.drop(taskId), { code: "busy", retryAfterS: 1 });
  losses = 10;
  assert.equal((await tasks.drop(taskId)).status, "dropped");
});

/** A store's methods as an object of their own. */
function bound(store: TaskStore): TaskStore {
  return {
    rootSecret: () => store.rootSecret(),
    createTask: (task, options) => store.createTask(task, options),
    getTask: (taskId) => store.getTask(taskId),
    getTaskByKey: (keyHash) => store.getTaskByKey(keyHash),
    updateTask: (next, version) => store.updateTask(next, version),
    listTasks: (query) => store.listTasks(query),
    dropTask: (dropped, version) => store.dropTask(dropped, version),
    stageTurn: (task, turn) => store.stageTurn(task, turn),
    appendTurn: (append) => store.appendTurn(append),
    readTurns: (task, from, to) => store.readTurns(task, from, to),
    getRepeat: (uid, digest) => store.getRepeat(uid, digest),
    saveScores: (task, given) => store.saveScores(task, given),
    readScores: (task, teacher) => store.readScores(task, teacher),
    listTeachers: (task) => store.listTeachers(task),
    putBlob: (owner, bytes) => store.putBlob(owner, bytes),
    getBlob: (owner, blob) => store.getBlob(owner, blob),
    putCall: (task, lease) => store.putCall(task, lease),
    removeCall: (uid, callId) => store.removeCall(uid, callId),
    listCalls: (uid) => store.listCalls(uid),
    putEvents: (task, events) => store.putEvents(task, events),
    listEvents: (uid) => store.listEvents(uid),
    sweep: (nowMs) => store.sweep(nowMs),
    flush: () => store.flush(),
    close: () => store.close(),
  };
}
