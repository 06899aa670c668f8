/** What the recorder makes of calls that come to nothing. */

import assert from "node:assert/strict";
import { openDenoKvStore } from "../adapters/deno_kv_store.ts";
import { systemClock } from "../adapters/system_clock.ts";
import { createRecorderWorld } from "../../tests/fixtures/recorder_world.ts";
import { until } from "../../tests/e2e/until.ts";

Deno.test("TurnRecorder notes a failed call whose place is too large to keep, in whatever script it is written", async () => {
  const store = openDenoKvStore({ kv: await Deno.openKv(":memory:"), clock: systemClock });
  await using world = await createRecorderWorld({ store });
  for (const text of ["world ".repeat(30), "世界".repeat(90)]) {
    for (const units of [60, 120, 240]) {
      const { taskId, uid } = await world.createTask();
      const messages = Array.from({ length: units }, (_, source) => {
        return { role: "user" as const, content: `${text}${source}`, source };
      });
      const asks = { conversation: { messages, tools: [], settings: {} }, says: null };
      await assert.rejects(world.ask(taskId, asks), { code: "engine_failed" });
      await until(`the failure of ${units} units is noted`, async () => (await store.listEvents(uid)).length > 0);
    }
  }
  assert.deepEqual(world.logger.lines.filter(({ level }) => level === "error"), []);
});

Deno.test("TurnRecorder never lets the policy act in a teacher's turn, where a process has no teacher", async () => {
  await using world = await createRecorderWorld();
  const { taskId } = await world.createTask({ rollin: { prefix_turns: 1 } });
  const conversation = {
    messages: [{ role: "user" as const, content: "Hello", source: 0 }],
    tools: [],
    settings: {},
  };
  await assert.rejects(world.ask(taskId, { conversation, says: "Hello." }), {
    code: "teacher_failed",
    retryable: false,
  });
  assert.equal(world.sampled.size, 0);
  assert.equal((await world.services.tasks.get(taskId)).task.turns, 0);
});
