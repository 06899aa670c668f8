/** What every task store does when several write at once. */

import assert from "node:assert/strict";
import {
  appendTurn,
  appendUntilCommitted,
  assertSameTurn,
  createTask,
  makeTask,
  makeTurn,
  manyIds,
  mustGet,
  START_MS,
  taskAfter,
  uniqueName,
} from "./store_fixtures.ts";
import type { Check } from "./task_store_contract.ts";

export const RACE_CHECKS: Record<string, Check> = {
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
