/** What the recorder makes of calls that come to nothing. */

import assert from "node:assert/strict";
import { openDenoKvStore } from "../../adapters/kv/deno_kv_store.ts";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { systemClock } from "../../adapters/system_clock.ts";
import { endWork } from "../../compose_services.ts";
import type { Conversation } from "../../core/message.ts";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createRecorderWorld } from "../../../tests/fixtures/recorder_world.ts";
import { spyOnStore } from "../../../tests/fixtures/spy_store.ts";
import { until } from "../../../tests/e2e/until.ts";

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

/** A conversation of these messages, an assistant's among them. */
function turns(...contents: readonly string[]): Conversation {
  const messages = contents.map((content, source) =>
    source % 2 === 0
      ? { role: "user" as const, content, source }
      : { role: "assistant" as const, content, reasoning: null, toolCalls: [], form: "", source }
  );
  return { messages, tools: [], settings: {} };
}

Deno.test("TurnRecorder waits for the commit of the answer that an agent already goes on from", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId } = await world.createTask();
  const commit = Promise.withResolvers<void>();
  spy.before("appendTurn", () => commit.promise);
  const first = world.ask(taskId, { conversation: turns("Hello"), says: "Hi.", stream: true });
  await until("the answer is about to be committed", () => spy.calls.get("appendTurn") === 1);
  const early = world.ask(taskId, { conversation: turns("Hello", "Hi.", "Go on."), says: "On." });
  const other = await Promise.race([
    early.then(() => "early" as const),
    new Promise((resolve) => setTimeout(resolve, 50)).then(() => "waits" as const),
  ]);
  assert.deepEqual([other, world.sampled.size], ["waits", 1], "nothing is sampled from the agent's own rendering");
  commit.resolve();
  assert.deepEqual([(await first).turn, (await early).turn], [0, 1]);
  const { task } = await world.services.tasks.get(taskId);
  const region = await world.services.exporter.region(task);
  assert.equal(region.reason, null);
  assert.deepEqual(Object(region.result).turns.length, 2);
});

Deno.test("TurnRecorder waits for the answer that is gone on from, though another sample of its prompt is committed", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  for (const echo of ["lenient", "strict"]) {
    const { taskId, uid } = await world.createTask({ history: "branch", echo });
    await world.ask(taskId, { conversation: turns("Hello"), says: "One." });
    spy.reset();
    const commit = Promise.withResolvers<void>();
    spy.before("appendTurn", () => commit.promise);
    const other = world.ask(taskId, { conversation: turns("Hello"), says: "Two.", stream: true });
    await until("the answer is about to be committed", () => spy.calls.get("appendTurn") === 1);
    const early = world.ask(taskId, { conversation: turns("Hello", "Two.", "Go on."), says: "On." });
    await until("the next request waits", () => world.services.inFlight.count(uid) === 2);
    spy.before("appendTurn", null);
    commit.resolve();
    assert.deepEqual([(await other).turn, (await early).turn], [1, 2]);
    const read = await world.services.tasks.get(taskId);
    assert.equal((await world.services.recorder.turnsOf(read))[2]?.record.parent, 1, echo);
  }
});

Deno.test("TurnRecorder goes on from an answer that was waited for, though its view was forgotten meanwhile", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store, viewBytes: 1 });
  const { taskId, uid } = await world.createTask();
  const { taskId: otherId } = await world.createTask();
  const commit = Promise.withResolvers<void>();
  spy.before("appendTurn", () => commit.promise);
  const first = world.ask(taskId, { conversation: turns("Hello"), says: "Hi.", stream: true });
  await until("the answer is about to be committed", () => spy.calls.get("appendTurn") === 1);
  const other = world.ask(otherId, { conversation: turns("Other"), says: "Hi." });
  await until("another task's is, too", () => spy.calls.get("appendTurn") === 2);
  const early = world.ask(taskId, { conversation: turns("Hello", "Hi.", "Go on."), says: "On." });
  await until("the next request waits", () => world.services.inFlight.count(uid) === 2);
  spy.before("appendTurn", null);
  commit.resolve();
  assert.deepEqual([(await first).turn, (await other).turn, (await early).turn], [0, 0, 1]);
  const read = await world.services.tasks.get(taskId);
  assert.equal((await world.services.recorder.turnsOf(read))[1]?.record.parent, 0);
});

Deno.test("TurnRecorder waits five seconds for an answer that was gone on from, and no longer", async () => {
  const spy = spyOnStore(createMemoryStore());
  const clock = createFakeClock();
  await using world = await createRecorderWorld({ store: spy.store, clock });
  const { taskId, uid } = await world.createTask();
  const commit = Promise.withResolvers<void>();
  spy.before("appendTurn", () => commit.promise);
  const first = world.ask(taskId, { conversation: turns("Hello"), says: "Hi.", stream: true });
  await until("the answer is about to be committed", () => spy.calls.get("appendTurn") === 1);
  const early = world.ask(taskId, { conversation: turns("Hello", "Hi.", "Go on."), says: "On." });
  await until("the next request waits", () => world.services.inFlight.count(uid) === 2);
  await clock.advance(4999);
  assert.equal(world.sampled.size, 1);
  await clock.advance(1);
  await until("the next request is sampled", () => world.sampled.size === 2);
  spy.before("appendTurn", null);
  commit.resolve();
  assert.deepEqual([(await first).turn, (await early).turn], [0, 1]);
  const read = await world.services.tasks.get(taskId);
  const { record, detail: { history } } = (await world.services.recorder.turnsOf(read))[1]!;
  assert.deepEqual(
    [record.parent, history.follows?.turn],
    [null, 0],
    "the record says what it followed and did not extend",
  );
});

Deno.test("TurnRecorder goes on where the answer that was gone on from is never committed", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  const { taskId } = await world.createTask();
  const commit = Promise.withResolvers<void>();
  spy.before("appendTurn", () => commit.promise);
  const first = world.ask(taskId, { conversation: turns("Hello"), says: "Hi.", stream: true });
  const lost = assert.rejects(first, /the store is gone/);
  await until("the answer is about to be committed", () => spy.calls.get("appendTurn") === 1);
  const early = world.ask(taskId, { conversation: turns("Hello", "Hi.", "Go on."), says: "On." });
  spy.before("appendTurn", null);
  commit.reject(new Error("the store is gone"));
  await lost;
  assert.equal((await early).turn, 0);
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

Deno.test("TurnRecorder answers a repeat with the turn of a call that was given up while it was committed", async () => {
  const spy = spyOnStore(createMemoryStore());
  await using world = await createRecorderWorld({ store: spy.store });
  for (const stream of [false, true]) {
    const { taskId, uid } = await world.createTask();
    spy.reset();
    const sampled = world.sampled.size;
    const commit = Promise.withResolvers<void>();
    spy.before("appendTurn", () => commit.promise);
    const hangUp = new AbortController();
    const first = world.ask(taskId, { conversation: turns("Hello"), says: "One.", stream, signal: hangUp.signal });
    await until("the answer is about to be committed", () => spy.calls.get("appendTurn") === 1);
    hangUp.abort(new Error("hung up"));
    await assert.rejects(first);
    const again = world.ask(taskId, { conversation: turns("Hello"), says: "Two.", stream, isRetry: true });
    await until("the repeat waits", () => world.services.inFlight.count(uid) === 2);
    commit.resolve();
    assert.deepEqual([(await again).turn, world.sampled.size], [0, sampled + 1], "nothing else is sampled");
  }
});

Deno.test("TurnRecorder begins no call once the work of its process has ended", async () => {
  await using world = await createRecorderWorld();
  const { taskId, uid } = await world.createTask();
  const gate = Promise.withResolvers<void>();
  const asks = { conversation: turns("Hello"), says: "Hi.", gate: () => gate.promise };
  const running = assert.rejects(world.ask(taskId, asks), { code: "not_ready" });
  await until("it runs", () => world.services.inFlight.count(uid) === 1);
  const ended = endWork(world.services);
  gate.resolve();
  await assert.rejects(world.ask(taskId, asks), { code: "not_ready" });
  await Promise.all([running, ended]);
  assert.equal(world.services.inFlight.total, 0);
  const noted = await world.services.store.listEvents(uid);
  assert.deepEqual(noted.map(({ type }) => type), ["failed"], "of the one that had begun");
});
