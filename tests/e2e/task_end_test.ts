/** How tasks end: finished, rewarded, expired, deleted, and their ids used again. */

import assert from "node:assert/strict";
import { type Body, movableClock, sharedHarness, user } from "./harness.ts";

const clock = movableClock();

const harness = sharedHarness({
  parts: { clock },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you.", "Good again."] }] } },
});

const hello = { messages: [user("Hello")] };

Deno.test("POST finish answers as result does, and repeated the same", async () => {
  const { id, key } = await harness().createTask({ group_id: "g", metadata: { a: 1, b: 1 } });
  await harness().chat(key, hello);
  const sent = { outcome: "truncated", cause: "out of time", reward: { main: 1, style: 0.5 }, metadata: { b: 2 } };
  const first = await harness().admin("POST", `/tasks/${id}/finish`, sent);
  assert.equal(first.status, 200);
  const { result, ...head } = first.body;
  assert.deepEqual(head, {
    task_id: id,
    group_id: "g",
    rollout_id: id,
    status: "finished",
    outcome: "truncated",
    cause: "out of time",
    reward: { main: 1, style: 0.5 },
    metadata: { a: 1, b: 2 },
    reason: null,
    notes: [],
    other_rows: 0,
  });
  assert.deepEqual(Object.keys(result).sort(), [
    "completion_token_ids",
    "finish_reason",
    "logprobs",
    "loss_mask",
    "prompt_token_ids",
    "turns",
    "weight_versions",
  ]);
  assert.deepEqual((await harness().admin("GET", `/tasks/${id}/result`)).body, first.body);
  for (const again of [sent, {}, { reward: { style: 0.5, main: 1 } }]) {
    const repeated = await harness().admin("POST", `/tasks/${id}/finish`, again);
    assert.deepEqual([repeated.status, repeated.body], [200, first.body]);
  }
  const task = await harness().task(id);
  assert.equal(task.capture.provisional, false);
  assert.ok(Date.parse(task.closed_at) >= Date.parse(task.created_at));
});

Deno.test("POST finish with another reward is 409 conflict, and the first stands", async () => {
  const { id } = await harness().createTask();
  await harness().admin("POST", `/tasks/${id}/finish`, { reward: 1 });
  for (const reward of [0, 1.5, { main: 1 }]) {
    const { status, body } = await harness().admin("POST", `/tasks/${id}/finish`, { reward });
    assert.equal(status, 409);
    assert.equal(body.error.code, "conflict");
  }
  assert.equal((await harness().task(id)).reward, 1);
});

Deno.test("a task finished without a turn has no result, and says why", async () => {
  const { id } = await harness().createTask();
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual([body.result, body.reason, body.outcome], [null, "nothing was generated", "completed"]);
  const rows = await harness().admin("GET", `/tasks/${id}/result?format=rows`);
  assert.deepEqual([rows.body.rows, rows.body.reason], [[], "nothing was generated"]);
});

Deno.test("PUT reward sets, replaces and grades turns until the task expires", async () => {
  const { id, key } = await harness().createTask({ ttl_s: 500 });
  const first = await harness().chat(key, hello);
  await harness().chat(key, { messages: [...hello.messages, first.body.choices[0].message, user("More")] });
  const put = (body: unknown) => harness().admin("PUT", `/tasks/${id}/reward`, body);
  assert.equal((await put({ reward: 0.25, per_turn: { 0: 0.1 } })).status, 200);
  await harness().admin("POST", `/tasks/${id}/finish`, {});
  const set = await put({ reward: 0.75, outcome: "failed", per_turn: { 1: -1 } });
  assert.equal(set.status, 200);
  assert.deepEqual([set.body.reward, set.body.outcome], [0.75, "failed"]);
  const { body } = await harness().admin("GET", `/tasks/${id}/result`);
  assert.equal(body.reward, 0.75);
  assert.deepEqual(body.result.turns.map((turn: Body) => turn.reward), [0.1, -1]);
  const unknown = await put({ reward: 1, per_turn: { 2: 1 } });
  assert.deepEqual([unknown.status, unknown.body.error.code], [404, "turn_not_found"]);
  clock.forward(500_000);
  const late = await put({ reward: 1 });
  assert.deepEqual([late.status, late.body.error.code], [404, "task_not_found"]);
});

Deno.test("an expired task keeps its name only: nothing of it can be read", async () => {
  const { id, key } = await harness().createTask({ ttl_s: 50 });
  await harness().chat(key, hello);
  clock.forward(50_000);
  const task = await harness().task(id);
  assert.deepEqual([task.status, task.capture, task.in_flight], ["expired", null, 0]);
  for (const path of ["turns", "explain", "result"]) {
    const { status, body } = await harness().admin("GET", `/tasks/${id}/${path}`);
    assert.deepEqual([status, body.error.code], [404, "task_not_found"]);
  }
  for (const [method, path, body] of [["POST", "/finish", {}], ["DELETE", "", undefined]] as const) {
    const answer = await harness().admin(method, `/tasks/${id}${path}`, body);
    assert.deepEqual([answer.status, answer.body.error.code], [404, "task_not_found"]);
  }
});

Deno.test("DELETE drops a task: its data is gone, its key is dead, and again is the same", async () => {
  const { id, key } = await harness().createTask();
  await harness().chat(key, hello);
  const dropped = await harness().admin("DELETE", `/tasks/${id}`);
  assert.deepEqual([dropped.status, dropped.body], [200, { task_id: id, status: "dropped" }]);
  assert.deepEqual((await harness().admin("DELETE", `/tasks/${id}`)).body, dropped.body);
  assert.equal((await harness().task(id)).status, "dropped");
  assert.equal((await harness().chat(key, hello)).status, 401);
  for (const path of ["turns", "explain", "result"]) {
    assert.equal((await harness().admin("GET", `/tasks/${id}/${path}`)).status, 404);
  }
  assert.equal((await harness().admin("POST", `/tasks/${id}/finish`, {})).status, 404);
  assert.equal((await harness().admin("PUT", `/tasks/${id}/reward`, { reward: 1 })).status, 404);
});

for (const end of ["dropped", "finished", "left open"]) {
  Deno.test(`an id of a task that was ${end} and has expired is a new task: no old turns, no old cache, no old key`, async () => {
    const task_id = `reused-${end.replace(" ", "-")}`;
    const create = async () => (await harness().admin("POST", "/tasks", { task_id, ttl_s: 100 })).body.api_key;
    const oldKey = await create();
    const first = await harness().chat(oldKey, hello);
    if (end === "dropped") await harness().admin("DELETE", `/tasks/${task_id}`);
    if (end === "finished") await harness().admin("POST", `/tasks/${task_id}/finish`, { reward: 1 });
    clock.forward(100_000);
    const newKey = await create();
    assert.notEqual(newKey, oldKey);
    const task = await harness().task(task_id);
    assert.deepEqual([task.status, task.turns, task.reward, task.outcome], ["open", 0, null, null]);
    assert.deepEqual(await harness().turns(task_id), []);
    assert.equal((await harness().chat(oldKey, hello)).status, 401);
    // The request of old, as a retry: nothing answers it but a new sample. Its echo finds no old turn either.
    const again = await harness().chat(newKey, hello, { "x-stainless-retry-count": "1" });
    assert.notEqual(again.body.id, first.body.id);
    assert.equal(again.headers.get("x-verbatim-turn"), "0");
    const { body } = await harness().admin("POST", `/tasks/${task_id}/finish`, {});
    assert.deepEqual([body.reason, body.result.turns.length], [null, 1]);
  });
}
