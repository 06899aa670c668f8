import assert from "node:assert/strict";
import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { clock, holdCommits, keysOf, macrotask, withSpy } from "./kv_harness.ts";
import {
  createTask,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
  taskAfter,
  TTL_MS,
} from "./store_fixtures.ts";

/** From the clock's standing moment to an hour after the tasks' end. */
const EXPIRE_IN_MS = TTL_MS + 3_600_000;

Deno.test("DenoKvStore gives every key of a task its expiry, an hour after the task's own", () =>
  withSpy(async ({ store, spy }) => {
    await store.rootSecret();
    const task = makeTask({ groupId: "g" });
    await store.createTask(task, { nowMs: START_MS, idempotencyKey: "k" });
    let read = await mustGet(store, task.taskId);
    read = await mustAppend(store, read, { turn: makeTurn(0, { completion: manyIds(90_000, 1) }) });
    read = await mustAppend(store, read, { turn: makeTurn(1, { completion: manyIds(30_000, 1) }) });
    read = await mustAppend(store, read, { turn: makeTurn(2, { grammar: "g".repeat(100_000) }) });
    await store.putCall(task, { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 0 });
    await store.putEvents(task, [{ ulid: "u", atMs: 0, type: "delivered", turn: 0, detail: {} }]);
    await store.updateTask({ ...read.task, status: "finished" }, read.version);
    const sets = spy.commits.flatMap(({ sets }) => sets).filter(({ key }) => key[0] !== "secret");
    const tables = new Set(sets.map(({ key }) => key[0]));
    assert.deepEqual([...tables].sort(), [
      "blob",
      "call",
      "event",
      "group",
      "idempotency",
      "key",
      "repeat",
      "task",
      "turn",
    ]);
    for (const { key, expireIn } of sets) assert.equal(expireIn, EXPIRE_IN_MS, key.join("/"));
  }));

Deno.test("DenoKvStore gives keys of a task long expired a moment, and no negative expiry", () =>
  withSpy(async ({ store, spy }) => {
    await createTask(store, makeTask({ expiresAtMs: START_MS - 10 * TTL_MS }));
    assert.deepEqual(new Set(spy.commits[0]!.sets.map(({ expireIn }) => expireIn)), new Set([1]));
  }));

Deno.test("DenoKvStore commits a turn of common size in one atomic write and without a read", () =>
  withSpy(async ({ store, spy }) => {
    const read = await createTask(store, makeTask());
    spy.commits.length = spy.reads.length = 0;
    const turn = makeTurn(0, { observation: manyIds(500, 1), completion: manyIds(200, 2) });
    await mustAppend(store, read, { turn, expectRepeat: null });
    assert.deepEqual(spy.reads, []);
    assert.deepEqual(spy.commits.map(({ sets }) => sets.map(({ key }) => key[0])), [["task", "turn", "repeat"]]);
  }));

Deno.test("DenoKvStore commits up to half a megabyte of turn in one atomic write", () =>
  withSpy(async ({ store, spy }) => {
    const read = await createTask(store, makeTask());
    spy.commits.length = 0;
    await mustAppend(store, read, { turn: makeTurn(0, { completion: manyIds(70_000, 2) }) });
    assert.equal(spy.commits.length, 1);
  }));

Deno.test("DenoKvStore writes what is larger ahead, and not again when the append is tried again", () =>
  withSpy(async ({ store, spy }) => {
    const read = await createTask(store, makeTask());
    const current = await mustAppend(store, read, { turn: makeTurn(0) });
    spy.commits.length = 0;
    const turn = makeTurn(0, { completion: manyIds(200_000, 2) });
    const staged = await store.stageTurn(read.task, turn);
    assert.ok(staged.written);
    assert.equal(spy.commits.length, 3);
    const lost = { read, next: taskAfter(read.task, turn), turn, staged, expectRepeat: null, callId: "c" };
    assert.equal((await store.appendTurn(lost)).kind, "task_changed");
    const again = { ...turn, record: { ...turn.record, turn: 1 } };
    const next = taskAfter(current.task, again);
    const won = await store.appendTurn({ ...lost, read: current, next, turn: again });
    assert.equal(won.kind, "committed");
    assert.equal(spy.commits.length, 5);
    assert.ok(spy.commits.slice(3).every(({ sets }) => sets.every(({ key }) => key[0] !== "blob")));
  }));

Deno.test("DenoKvStore readTurns is one pass over the turns", () =>
  withSpy(async ({ store, spy }) => {
    let read = await createTask(store, makeTask());
    for (let number = 0; number < 60; number++) read = await mustAppend(store, read, { turn: makeTurn(number) });
    spy.reads.length = 0;
    assert.equal((await store.readTurns(read.task, 0, 60)).length, 60);
    assert.deepEqual(spy.reads, ["list"]);
    read = await mustAppend(store, read, { turn: makeTurn(60, { completion: manyIds(200_000, 1) }) });
    spy.reads.length = 0;
    await store.readTurns(read.task, 0, 61);
    assert.deepEqual(spy.reads, ["list", "list"]);
  }));

Deno.test("DenoKvStore puts commits of different tasks into one atomic write; a failed check hurts only its own", () =>
  withSpy(async ({ store, spy }) => {
    const reads = await Promise.all(Array.from({ length: 5 }, () => createTask(store, makeTask())));
    const stale = reads[2]!;
    await mustAppend(store, stale, { turn: makeTurn(0) });
    const staged = await Promise.all(reads.map((read) => store.stageTurn(read.task, makeTurn(0))));
    spy.commits.length = 0;
    const event = { ulid: "u", atMs: 0, type: "delivered", turn: 0, detail: {} } as const;
    const release = holdCommits(spy);
    const first = store.removeCall(stale.task.uid, "first");
    await macrotask();
    const written = store.putEvents(stale.task, [event]);
    const appends = reads.map((read, index) => {
      const turn = makeTurn(0);
      const next = taskAfter(read.task, turn);
      return store.appendTurn({ read, next, turn, staged: staged[index]!, expectRepeat: null, callId: "c" });
    });
    await macrotask();
    release();
    const outcomes = await Promise.all(appends);
    await Promise.all([first, written]);
    const kinds = outcomes.map(({ kind }) => kind);
    assert.deepEqual(kinds, ["committed", "committed", "task_changed", "committed", "committed"]);
    assert.equal(spy.commits[1]!.checks.length, 10);
    // What held the queue; all together; then the event, and each of the five alone.
    assert.equal(spy.commits.length, 8);
    assert.deepEqual(await store.listEvents(stale.task.uid), [event]);
    for (const read of reads) assert.equal((await mustGet(store, read.task.taskId)).task.turns, 1);
  }, { maxCommits: 1 }));

Deno.test("DenoKvStore gathers events and leases into few atomic writes", () =>
  withSpy(async ({ store, spy }) => {
    const { task } = await createTask(store, makeTask());
    spy.commits.length = 0;
    await Promise.all(Array.from({ length: 200 }, (_, index) => {
      const ulid = String(index).padStart(3, "0");
      if (index % 2 === 1) return store.removeCall(task.uid, ulid);
      return store.putEvents(task, [{ ulid, atMs: 0, type: "delivered", turn: null, detail: {} }]);
    }));
    assert.ok(spy.commits.length <= 4, `${spy.commits.length} commits`);
    assert.equal((await store.listEvents(task.uid)).length, 100);
  }));

Deno.test("DenoKvStore refuses a record that is too large before a turn depends on it", () =>
  withSpy(async ({ store }) => {
    const large = makeTask({ finishMetadata: { text: "\u{1f600}".repeat(16_000) } });
    await assert.rejects(store.createTask(large, { nowMs: START_MS }), { code: "body_too_large", status: 413 });
    const bytes = new TextEncoder().encode(JSON.stringify(makeTask())).byteLength;
    const largest = makeTask({ finishMetadata: { text: "x".repeat(64_000 - bytes - 20) } });
    let read = await createTask(store, largest);
    const grown = { ...read.task, promptTokens: 2 ** 50, completionTokens: 2 ** 50 };
    read = await mustAppend(store, { task: grown, version: read.version }, { turn: makeTurn(0) });
    await store.dropTask({ ...read.task, status: "dropped", closedAtMs: START_MS }, read.version);
    const { task } = await createTask(store, makeTask());
    const huge = { ulid: "u", atMs: 0, type: "failed", turn: null, detail: { text: "x".repeat(70_000) } } as const;
    await assert.rejects(store.putEvents(task, [huge]), { code: "internal" });
    assert.deepEqual(await store.listEvents(task.uid), []);
  }));

Deno.test("DenoKvStore removes thousands of entries of one task", async () => {
  const kv = await Deno.openKv(":memory:");
  const store = openDenoKvStore({ kv, clock });
  const read = await createTask(store, makeTask());
  await store.putEvents(
    read.task,
    Array.from({ length: 3_000 }, (_, index) => ({
      ulid: `${index}`.padStart(5, "0").padEnd(200, "x"),
      atMs: 0,
      type: "delivered" as const,
      turn: null,
      detail: {},
    })),
  );
  assert.equal(await store.dropTask({ ...read.task, status: "dropped" }, read.version), true);
  assert.deepEqual((await keysOf(kv)).map(([table]) => table), ["task"]);
  await store.close();
});
