import assert from "node:assert/strict";
import { createTask, makeTask, makeTurn, manyIds, mustAppend } from "../../../tests/contracts/store_fixtures.ts";
import { conversationOf } from "../../../tests/fixtures/conversations.ts";
import { spyOnStore } from "../../../tests/fixtures/spy_store.ts";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { Forest } from "../../core/forest.ts";
import { turnHistory } from "../../core/record_history.ts";
import { requestUnits } from "../../core/request_units.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Turn } from "../../core/turn.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { TaskViews } from "./task_views.ts";

const MAX_BYTES = 400_000;

/** A turn that begins a path, as a recorder makes it. */
function rootTurn(number: number, tokens: number): Turn {
  const turn = makeTurn(number, { completion: manyIds(tokens, number) });
  const request = requestUnits(conversationOf([`u:question ${number}`]));
  const history = turnHistory(new Forest(), request, turn.detail.reply);
  return { ...turn, record: { ...turn.record, parent: null }, detail: { ...turn.detail, history } };
}

async function taskWith(store: TaskStore, turns: number, tokens: number): Promise<TaskRecord> {
  let read = await createTask(store, makeTask());
  for (let number = 0; number < turns; number++) {
    read = await mustAppend(store, read, { turn: rootTurn(number, tokens) });
  }
  return read.task;
}

Deno.test("TaskViews reads a task's turns once, and later only what is new", async () => {
  const { store, calls } = spyOnStore(createMemoryStore());
  const views = new TaskViews(store, { maxBytes: MAX_BYTES });
  let read = await createTask(store, makeTask());
  for (let number = 0; number < 5; number++) {
    read = await mustAppend(store, read, { turn: rootTurn(number, 10) });
    const [one, other] = await Promise.all([views.of(read.task), views.of(read.task)]);
    assert.equal(one, other);
    assert.equal(one.turns.length, number + 1);
    assert.equal(calls.get("readTurns"), number + 1);
  }
});

Deno.test("TaskViews keeps what weighs little enough, and gives up the least recently used first", async () => {
  const store = createMemoryStore();
  const views = new TaskViews(store, { maxBytes: MAX_BYTES });
  const tasks = await Promise.all(Array.from({ length: 30 }, () => taskWith(store, 2, 1_000)));
  const [first] = tasks;
  for (const task of tasks) {
    await views.of(task);
    await views.of(first!);
    assert.ok(views.bytes <= MAX_BYTES, `${views.bytes} bytes`);
  }
  const kept = tasks.filter(({ uid }) => views.known(uid) !== null);
  assert.ok(kept.length > 3 && kept.length < 30, `${kept.length} are kept`);
  assert.deepEqual(kept, [first, ...tasks.slice(1 - kept.length)]);
  for (const task of tasks) views.drop(task.uid);
  assert.equal(views.bytes, 0);
});

Deno.test("TaskViews is bounded for tasks that have no turn, however many there are", async () => {
  const views = new TaskViews(createMemoryStore(), { maxBytes: MAX_BYTES });
  const tasks = Array.from({ length: 10_000 }, () => makeTask());
  for (const task of tasks) await views.of(task);
  assert.ok(views.bytes <= MAX_BYTES);
  const kept = tasks.filter(({ uid }) => views.known(uid) !== null).length;
  assert.ok(kept > 0 && kept < 300, `${kept} are kept`);
});

Deno.test("TaskViews lets a view that is too heavy by itself do its work", async () => {
  const store = createMemoryStore();
  const views = new TaskViews(store, { maxBytes: MAX_BYTES });
  const heavy = await taskWith(store, 1, 100_000);
  const view = await views.of(heavy);
  assert.equal(view.series(0).length, 100_000 + 3);
  const light = await taskWith(store, 1, 10);
  await views.of(light);
  assert.equal(views.known(heavy.uid), null);
  assert.ok(views.bytes <= MAX_BYTES);
  // Whoever still holds it may go on with it; it counts no more.
  view.keepRequest(0, { body: null, request: requestUnits(conversationOf(["u:later"])) });
  assert.ok(views.bytes <= MAX_BYTES && views.known(light.uid) !== null);
});
