/** What every task store does with a teacher's scores: kept beside the turns, replaced, read back, gone with the task. */

import assert from "node:assert/strict";
import type { TurnScores } from "../../shared/core/turn_scores.ts";
import { createTask, makeTask, makeTurn, mustAppend, START_MS, TTL_MS } from "./store_fixtures.ts";
import type { Check } from "./task_store_contract.ts";

function scoresOf(turn: number, shape: { tokens: number; topK: number }): TurnScores {
  const { tokens, topK } = shape;
  return {
    turn,
    topK,
    logprobs: Float32Array.from({ length: tokens }, (_, at) => -1 / (1 + at)),
    topkIndices: Int32Array.from({ length: tokens * topK }, (_, at) => at),
    topkLogprobs: Float32Array.from({ length: tokens * topK }, (_, at) => -at / 7),
  };
}

export const SCORE_CHECKS: Record<string, Check> = {
  "saveScores keeps scores of any size by teacher and turn, and readScores gives them back in order": async (
    opened,
  ) => {
    const { store } = opened;
    const read = await createTask(store, makeTask());
    const { task } = await mustAppend(store, read, { turn: makeTurn(0) });
    assert.deepEqual(await store.listTeachers(task), []);
    assert.deepEqual(await store.readScores(task, "t@1"), []);
    const scores = [
      scoresOf(10, { tokens: 3, topK: 0 }),
      scoresOf(2, { tokens: 0, topK: 5 }),
      scoresOf(0, { tokens: 382, topK: 20 }),
      scoresOf(1, { tokens: 20_000, topK: 20 }),
    ];
    assert.equal(await store.saveScores(task, { teacher: "t@1", scores }), true);
    const wide: TurnScores = { ...scoresOf(0, { tokens: 1, topK: 1 }), logprobs: Float64Array.of(-0.1) };
    assert.equal(await store.saveScores(task, { teacher: "\u00e9t@2", scores: [wide] }), true);
    assert.equal(await store.saveScores(task, { teacher: "none", scores: [] }), true);
    const kept = await store.readScores(task, "t@1");
    assert.deepEqual(kept, scores.toSorted((left, right) => left.turn - right.turn));
    assert.deepEqual(await store.readScores(task, "\u00e9t@2"), [wide]);
    assert.deepEqual(await store.listTeachers(task), ["t@1", "\u00e9t@2"]);
    kept[0]!.logprobs.fill(0);
    assert.deepEqual((await store.readScores(task, "t@1"))[0]!.logprobs, scores[2]!.logprobs);
  },

  "saveScores replaces what was kept of a turn": async ({ store }) => {
    const { task } = await createTask(store, makeTask());
    for (const shape of [{ tokens: 20_000, topK: 20 }, { tokens: 2, topK: 1 }, { tokens: 20_000, topK: 10 }]) {
      const scores = scoresOf(4, shape);
      assert.equal(await store.saveScores(task, { teacher: "t", scores: [scores] }), true);
      assert.deepEqual(await store.readScores(task, "t"), [scores]);
    }
  },

  "scores go with their task, and none are kept of one that is gone": async (opened) => {
    const { store } = opened;
    const read = await createTask(store, makeTask());
    const scores = Array.from(
      { length: 250 },
      (_, turn) => scoresOf(turn, { tokens: turn === 7 ? 9_000 : 2, topK: 2 }),
    );
    assert.equal(await store.saveScores(read.task, { teacher: "t", scores }), true);
    await store.dropTask({ ...read.task, status: "dropped" }, read.version);
    assert.deepEqual(await store.readScores(read.task, "t"), []);
    assert.equal(await store.saveScores(read.task, { teacher: "t", scores: scores.slice(0, 2) }), false);
    assert.deepEqual(await store.listTeachers(read.task), []);
    assert.equal(await opened.residue?.(read.task.uid) ?? 0, 0);

    const expired = await createTask(store, makeTask());
    await store.saveScores(expired.task, { teacher: "t", scores });
    await store.sweep(START_MS + TTL_MS);
    assert.equal(await store.saveScores(expired.task, { teacher: "t", scores: scores.slice(0, 1) }), false);
    assert.deepEqual(await store.readScores(expired.task, "t"), []);
    assert.equal(await opened.residue?.(expired.task.uid) ?? 0, 0);
    assert.equal(await store.saveScores(makeTask(), { teacher: "t", scores }), false);
  },
};
