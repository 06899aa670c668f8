/** What every task store does with turns: the commit, and reading back bit for bit. */

import assert from "node:assert/strict";
import type { Turn } from "../../shared/core/turn.ts";
import type { AppendOutcome } from "../../shared/ports/task_store.ts";
import {
  appendTurn,
  assertSameTurn,
  createTask,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  taskAfter,
  uniqueName,
} from "./store_fixtures.ts";
import type { Check } from "./task_store_contract.ts";

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

export const TURN_CHECKS: Record<string, Check> = {
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
