/** A task that is judged while its calls go on. */

import assert from "node:assert/strict";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { createRecorderWorld } from "../../../tests/fixtures/recorder_world.ts";
import { spyOnStore } from "../../../tests/fixtures/spy_store.ts";
import { until } from "../../../tests/e2e/until.ts";
import type { Conversation } from "../../core/message.ts";

function asks(...contents: string[]): Conversation {
  return {
    messages: contents.map((content, source) => ({ role: "user" as const, content, source })),
    tools: [],
    settings: {},
  };
}

Deno.test("judgeTask tells of the turns up to the record, though a call that went on from a later turn failed meanwhile", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId, uid } = await world.createTask();
  await world.ask(taskId, { conversation: asks("First"), says: "Yes." });
  // The record is read; before the events are, another turn is committed and a call that goes on from it fails.
  spy.before("listEvents", async () => {
    spy.before("listEvents", null);
    await world.ask(taskId, { conversation: asks("Second"), says: "Yes." });
    await assert.rejects(world.ask(taskId, { conversation: asks("Second", "Third"), says: null }));
    await until(
      "the failure is noted",
      async () => (await spy.store.listEvents(uid)).some(({ type }) => type === "failed"),
    );
  });
  const read = await world.services.tasks.get(taskId);
  assert.ok(read !== null);
  const judged = await world.services.exporter.judged(read.task);
  assert.deepEqual([judged.turns.length, judged.judgement.turns.length], [1, 1]);
});

Deno.test("judgeTask reads a task whose turns were forgotten while a joined call ran", async () => {
  await using world = await createRecorderWorld({ viewBytes: 1 });
  const { taskId, uid } = await world.createTask({ on_repeat: "replay" });
  const other = await world.createTask();
  const gate = Promise.withResolvers<void>();
  const call = { conversation: asks("Same"), says: "Yes.", gate: () => gate.promise };
  const both = [world.ask(taskId, call), world.ask(taskId, call)];
  await until("the call runs", () => world.services.inFlight.count(uid) === 1);
  // The turns of another task take the room.
  await world.ask(other.taskId, { conversation: asks("Other"), says: "Yes." });
  gate.resolve();
  const answers = await Promise.all(both);
  assert.deepEqual(answers.map(({ turn }) => turn), [0, 0]);
  const read = await world.services.tasks.get(taskId);
  assert.ok(read !== null);
  const judged = await world.services.exporter.judged(read.task);
  assert.deepEqual(judged.judgement.turns.map(({ replays }) => replays), [1]);
});
