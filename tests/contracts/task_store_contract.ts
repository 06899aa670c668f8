/** What every task store must do. It knows the port and none of the adapters. */

import assert from "node:assert/strict";
import type { TaskEvent, TaskRecord } from "../../shared/core/task.ts";
import type { Turn } from "../../shared/core/turn.ts";
import type { AppendOutcome, StagedTurn, TaskStore } from "../../shared/ports/task_store.ts";
import {
  appendTurn,
  createTask,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
  taskAfter,
  TTL_MS,
  uniqueName,
} from "./store_fixtures.ts";

/** One store for one test. */
export interface OpenStore {
  readonly store: TaskStore;
  /** How many entries are still kept under a uid, where the test can look. */
  readonly residue: ((uid: string) => Promise<number>) | null;
  dispose(): Promise<void>;
}

type Check = (opened: OpenStore) => Promise<void>;

/** Registers the suite for one adapter; every test gets an empty store from `open`. */
export function testTaskStore(name: string, open: () => Promise<OpenStore>): void {
  for (const [behaviour, check] of Object.entries({ ...TASKS, ...TURNS, ...RACES, ...JOURNAL })) {
    Deno.test(`${name} ${behaviour}`, async () => {
      const opened = await open();
      try {
        await check(opened);
      } finally {
        await opened.dispose();
      }
    });
  }
}

const TASKS: Record<string, Check> = {
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

const TURNS: Record<string, Check> = {
  "appendTurn commits turn, record and repeat key, and ends the lease": async ({ store }) => {
    const read = await createTask(store, makeTask());
    await store.putCall(read.task, { callId: "mine", digest: "d", rid: "r", startedAtMs: 0, untilMs: 1 });
    await store.putCall(read.task, { callId: "other", digest: "d", rid: "r", startedAtMs: 0, untilMs: 1 });
    const turn = makeTurn(0, { digest: "d" });
    const after = await mustAppend(store, read, { turn, expectRepeat: null, callId: "mine" });
    assert.deepEqual(await store.getTask(read.task.taskId), after);
    assert.deepEqual(await store.getTaskByKey(read.task.keyHash), after);
    assert.equal(await store.getRepeat(read.task.uid, "d"), 0);
    assert.deepEqual((await store.listCalls(read.task.uid)).map(({ callId }) => callId), ["other"]);
    assertSameTurn((await store.readTurns(after.task, 0, 1))[0], turn);
    const second = await mustAppend(store, after, { turn: makeTurn(1) });
    assert.equal((await store.readTurns(second.task, 0, 2)).length, 2);
  },

  "appendTurn on a stale version changes nothing, and the staged turn serves the next attempt": async ({ store }) => {
    const read = await createTask(store, makeTask());
    for (const length of [10, 200_000]) {
      const current = await mustGet(store, read.task.taskId);
      const number = current.task.turns;
      const staged = await store.stageTurn(current.task, makeTurn(number, { completion: manyIds(length, 5) }));
      await mustAppend(store, current, { turn: makeTurn(number) });
      const stale = makeTurn(number, { completion: manyIds(length, 5), digest: uniqueName("late-") });
      const append = { turn: stale, staged, expectRepeat: null, callId: "c" };
      const lost = await store.appendTurn({ ...append, read: current, next: taskAfter(current.task, stale) });
      assert.deepEqual(lost, { kind: "task_changed" });
      assert.equal(await store.getRepeat(read.task.uid, stale.record.digest), null);
      const fresh = await mustGet(store, read.task.taskId);
      assert.equal(fresh.task.turns, number + 1);
      const turn: Turn = { ...stale, record: { ...stale.record, turn: number + 1 } };
      const won = await store.appendTurn({ ...append, turn, read: fresh, next: taskAfter(fresh.task, turn) });
      assert.equal(won.kind, "committed");
      const stored = await store.readTurns((await mustGet(store, read.task.taskId)).task, number + 1, number + 2);
      assertSameTurn(stored[0], turn);
    }
  },

  "appendTurn tells who answers the digest now": async ({ store }) => {
    let read = await createTask(store, makeTask());
    read = await mustAppend(store, read, { turn: makeTurn(0, { digest: "same" }), expectRepeat: null });
    const taken: AppendOutcome = { kind: "repeat_changed", turn: 0 };
    const turn = makeTurn(1, { digest: "same" });
    assert.deepEqual(await appendTurn(store, read, { turn, expectRepeat: null }), taken);
    assert.deepEqual(await appendTurn(store, read, { turn, expectRepeat: 7 }), taken);
    assert.equal((await mustGet(store, read.task.taskId)).task.turns, 1);
    read = await mustAppend(store, read, { turn, expectRepeat: 0 });
    assert.equal(await store.getRepeat(read.task.uid, "same"), 1);
    const staged = await store.stageTurn(read.task, turn);
    const any = makeTurn(2, { digest: "same" });
    const next = taskAfter(read.task, any);
    const outcome = await store.appendTurn({ read, next, turn: any, staged, expectRepeat: undefined, callId: "c" });
    assert.equal(outcome.kind, "committed");
    assert.equal(await store.getRepeat(read.task.uid, "same"), 2);
    const unknown = makeTurn(3, { digest: "never seen" });
    const current = await mustGet(store, read.task.taskId);
    assert.deepEqual(await appendTurn(store, current, { turn: unknown, expectRepeat: 1 }), { kind: "task_changed" });
  },

  "appendTurn of what is committed already answers the same commit": async ({ store }) => {
    const read = await createTask(store, makeTask());
    const turn = makeTurn(0);
    const staged = await store.stageTurn(read.task, turn);
    const append = { read, next: taskAfter(read.task, turn), turn, staged, expectRepeat: null, callId: "c" };
    const first = await store.appendTurn(append);
    assert.equal(first.kind, "committed");
    assert.deepEqual(await store.appendTurn(append), first);
    assert.equal((await mustGet(store, read.task.taskId)).task.turns, 1);
  },

  "appendTurn refuses a turn of another number": async ({ store }) => {
    const read = await createTask(store, makeTask());
    await assert.rejects(appendTurn(store, read, { turn: makeTurn(1) }), { code: "internal" });
    const turn = makeTurn(0);
    const staged = await store.stageTurn(read.task, turn);
    const next = taskAfter(makeTask(), turn);
    const elsewhere = { read, next, turn, staged, expectRepeat: null, callId: "c" };
    await assert.rejects(store.appendTurn(elsewhere), { code: "internal" });
  },

  "stageTurn refuses a turn without one logprob a token": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const turn = makeTurn(0, { logprobs: Float32Array.of(-1) });
    await assert.rejects(store.stageTurn(task, turn), { code: "internal" });
  },

  "stageTurn alone makes no turn": async (opened) => {
    const { store } = opened;
    const read = await createTask(store, makeTask());
    await store.stageTurn(read.task, makeTurn(0, { completion: manyIds(90_000, 0) }));
    assert.deepEqual(await mustGet(store, read.task.taskId), read);
    await assert.rejects(store.readTurns(read.task, 0, 1), { code: "internal" });
    const turn = makeTurn(0);
    const after = await mustAppend(store, read, { turn });
    assertSameTurn((await store.readTurns(after.task, 0, 1))[0], turn);
    await store.dropTask({ ...after.task, status: "dropped" }, after.version);
    assert.equal(await opened.residue?.(read.task.uid) ?? 0, 0);
  },

  "readTurns gives back a turn of any size bit for bit": async ({ store }) => {
    const extremes = Float64Array.from(
      { length: 16_000 },
      (_, index) => EXTREMES[index % EXTREMES.length]! * (1 + index),
    );
    const turns = [
      makeTurn(0, {
        observation: manyIds(120_000, 1),
        completion: manyIds(16_000, 2),
        logprobs: extremes,
        content: "long \u{1f600}".repeat(30_000),
      }),
      makeTurn(1, { observation: new Uint32Array(0), completion: new Uint32Array(0) }),
      makeTurn(2, { completion: Uint32Array.from(EXTREMES, (_, i) => i), logprobs: Float64Array.from(EXTREMES) }),
      makeTurn(3, { completion: manyIds(15_000, 4) }),
      makeTurn(4, { grammar: "g".repeat(300_000), content: "x".repeat(61_000) }),
      makeTurn(5, { grammar: "g".repeat(1_200_000), content: "y".repeat(2_500_000) }),
      makeTurn(6, { content: "z".repeat(60_500) }),
      makeTurn(7, { grammar: "h".repeat(30_000), content: "z".repeat(33_500) }),
    ];
    let read = await createTask(store, makeTask());
    for (const turn of turns) read = await mustAppend(store, read, { turn });
    const stored = await store.readTurns(read.task, 0, turns.length);
    for (const [index, turn] of turns.entries()) assertSameTurn(stored[index], turn);
    assert.ok(stored[0]!.logprobs instanceof Float64Array);
    assert.ok(stored[3]!.logprobs instanceof Float32Array);
  },

  "readTurns gives logprobs as float32 where that loses nothing": async ({ store }) => {
    let read = await createTask(store, makeTask());
    const completion = manyIds(3, 0);
    const exact = Float64Array.of(-0.5, -0, Math.fround(-0.1));
    read = await mustAppend(store, read, { turn: makeTurn(0, { completion, logprobs: exact }) });
    read = await mustAppend(store, read, {
      turn: makeTurn(1, { completion, logprobs: Float64Array.of(-0.5, -0.1, 0) }),
    });
    const [narrow, wide] = await store.readTurns(read.task, 0, 2);
    assert.deepEqual(narrow!.logprobs, Float32Array.from(exact));
    assert.ok(Object.is(narrow!.logprobs[1], -0));
    assert.deepEqual(wide!.logprobs, Float64Array.of(-0.5, -0.1, 0));
  },

  "readTurns reads a range, and fails where a turn is missing": async ({ store }) => {
    let read = await createTask(store, makeTask());
    const turns = Array.from({ length: 5 }, (_, index) => makeTurn(index));
    for (const turn of turns) read = await mustAppend(store, read, { turn });
    assert.deepEqual((await store.readTurns(read.task, 1, 4)).map(({ record }) => record.turn), [1, 2, 3]);
    assert.deepEqual(await store.readTurns(read.task, 3, 3), []);
    await assert.rejects(store.readTurns(read.task, 3, 6), { code: "internal" });
    await assert.rejects(store.readTurns(makeTask(), 0, 1), { code: "internal" });
  },

  "readTurns reads four hundred turns in order": async ({ store }) => {
    let read = await createTask(store, makeTask());
    const turns = Array.from({ length: 400 }, (_, index) => makeTurn(index));
    for (const turn of turns) read = await mustAppend(store, read, { turn });
    const stored = await store.readTurns(read.task, 0, 400);
    for (const [index, turn] of turns.entries()) assertSameTurn(stored[index], turn);
  },
};

const RACES: Record<string, Check> = {
  "createTask lets one of many creations of an id win": async ({ store }) => {
    const taskId = uniqueName("contested-");
    const tasks = Array.from({ length: 8 }, () => makeTask({ taskId }));
    const outcomes = await Promise.all(tasks.map((task) => store.createTask(task, { nowMs: START_MS })));
    const winners = tasks.filter((_, index) => outcomes[index]!.kind === "created");
    assert.equal(winners.length, 1);
    assert.equal(outcomes.filter(({ kind }) => kind === "exists").length, 7);
    assert.deepEqual((await mustGet(store, taskId)).task, winners[0]);
  },

  "createTask makes one task under one idempotency key": async ({ store }) => {
    const options = { nowMs: START_MS, idempotencyKey: "race" };
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => store.createTask(makeTask(), options)));
    assert.equal(outcomes.filter(({ kind }) => kind === "created").length, 1);
    const repeated = outcomes.filter((outcome) => outcome.kind === "repeated").map(({ task }) => task.taskId);
    assert.equal(repeated.length, 7);
    const { tasks } = await store.listTasks({ limit: 20 });
    assert.deepEqual([...new Set(repeated)], tasks.map(({ taskId }) => taskId));
  },

  "updateTask lets one of many writers of a version win": async ({ store }) => {
    const { task, version } = await createTask(store, makeTask());
    const versions = await Promise.all(
      Array.from({ length: 8 }, (_, index) => store.updateTask({ ...task, cause: `writer ${index}` }, version)),
    );
    const winner = versions.findIndex((written) => written !== null);
    assert.equal(versions.filter((written) => written !== null).length, 1);
    const stored = await mustGet(store, task.taskId);
    assert.deepEqual([stored.version, stored.task.cause], [versions[winner], `writer ${winner}`]);
  },

  "appendTurn of racing attempts keeps every attempt's own tokens": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const lengths = [3, 3, 3, 40_000, 170_000, 170_000];
    await Promise.all(lengths.map((length, seed) => appendUntilCommitted(store, task.taskId, { length, seed })));
    const after = await mustGet(store, task.taskId);
    assert.equal(after.task.turns, lengths.length);
    const stored = await store.readTurns(after.task, 0, lengths.length);
    for (const [seed, length] of lengths.entries()) {
      const mine = stored.filter(({ record }) => record.rid === `attempt-${seed}`);
      assert.equal(mine.length, 1);
      assert.deepEqual(mine[0]!.completion, manyIds(length, seed));
    }
  },

  "appendTurn of two attempts at one request commits one": async ({ store }) => {
    const read = await createTask(store, makeTask());
    const attempts = [200_000, 200_001].map((length) => {
      return makeTurn(0, { digest: "request", completion: manyIds(length, length) });
    });
    const outcomes = await Promise.all(
      attempts.map((turn) => appendTurn(store, read, { turn, expectRepeat: null })),
    );
    const winner = outcomes.findIndex(({ kind }) => kind === "committed");
    assert.deepEqual(outcomes[1 - winner], { kind: "repeat_changed", turn: 0 });
    const [stored] = await store.readTurns(taskAfter(read.task, attempts[winner]!), 0, 1);
    assertSameTurn(stored, attempts[winner]!);
  },

  "dropTask ends a race with appends: none comes after it": async (opened) => {
    const { store } = opened;
    for (const length of [2, 160_000]) {
      const read = await createTask(store, makeTask());
      const turn = makeTurn(0, { completion: manyIds(length, 8) });
      const [appended, dropped] = await Promise.all([
        appendTurn(store, read, { turn, expectRepeat: null }),
        store.dropTask({ ...read.task, status: "dropped" }, read.version),
      ]);
      assert.equal(appended.kind === "committed", !dropped);
      const current = await mustGet(store, read.task.taskId);
      if (dropped) assert.equal(current.task.status, "dropped");
      else assert.equal(await store.dropTask({ ...current.task, status: "dropped" }, current.version), true);
      assert.equal(await store.getRepeat(read.task.uid, turn.record.digest), null);
      await assert.rejects(store.readTurns(read.task, 0, 1), { code: "internal" });
    }
  },

  "dropTask ends a race with many appenders": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    const appenders = Array.from({ length: 4 }, async (_, seed) => {
      for (let n = 0; n < 5; n++) {
        if (!await appendUntilCommitted(store, task.taskId, { length: 3, seed })) return;
      }
    });
    let tombstone = false;
    for (let attempt = 0; attempt < 1_000 && !tombstone; attempt++) {
      const read = await mustGet(store, task.taskId);
      tombstone = await store.dropTask({ ...read.task, status: "dropped" }, read.version);
    }
    await Promise.all(appenders);
    assert.equal(tombstone, true);
    assert.equal((await mustGet(store, task.taskId)).task.status, "dropped");
  },
};

const JOURNAL: Record<string, Check> = {
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

/** Doubles at every edge of the format, none of them NaN. */
const EXTREMES = [
  -Number.MIN_VALUE,
  -Number.MAX_VALUE / 1e6,
  -0,
  0,
  -0.1,
  -1 - Number.EPSILON,
  -2.2250738585072014e-308,
  -1.1754943508222875e-38,
  -16777217,
  -1e-45,
];

function assertSameTurn(stored: Turn | undefined, turn: Turn): void {
  assert.ok(stored !== undefined);
  assert.deepEqual(stored.record, turn.record);
  assert.deepEqual(stored.detail, turn.detail);
  assert.deepEqual(stored.observation, turn.observation);
  assert.deepEqual(stored.completion, turn.completion);
  // Widening a float32 is exact, so equal bits as float64 are equal values, signs of zero included.
  assert.deepEqual(bitsOf(stored.logprobs), bitsOf(turn.logprobs));
}

function bitsOf(values: ArrayLike<number>): BigUint64Array {
  return new BigUint64Array(Float64Array.from(values).buffer);
}

function eventOf(ulid: string, turn: number): TaskEvent {
  return { ulid, atMs: START_MS + turn, type: "delivered", turn, detail: { bytes: turn, text: "\u{1f600}" } };
}

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

/** What a caller does that loses races: reads again and tries again, with what it staged once. False where the task is dropped. */
export async function appendUntilCommitted(
  store: TaskStore,
  taskId: string,
  attempt: { length: number; seed: number },
): Promise<boolean> {
  const made = makeTurn(0, { completion: manyIds(attempt.length, attempt.seed) });
  let staged: StagedTurn | null = null;
  for (let tries = 0; tries < 1_000; tries++) {
    const read = await mustGet(store, taskId);
    if (read.task.status === "dropped") return false;
    const turn: Turn = { ...made, record: { ...made.record, turn: read.task.turns, rid: `attempt-${attempt.seed}` } };
    staged ??= await store.stageTurn(read.task, turn);
    const next = taskAfter(read.task, turn);
    const outcome = await store.appendTurn({ read, next, turn, staged, expectRepeat: null, callId: "c" });
    if (outcome.kind === "committed") return true;
    assert.equal(outcome.kind, "task_changed");
  }
  throw new Error("the append never won");
}
