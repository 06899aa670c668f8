/** Tasks that end while calls of theirs are running: a finish waits for them, then aborts them; a deletion does not wait. */

import assert from "node:assert/strict";
import { type Body, sharedHarness, user } from "./harness.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const harness = sharedHarness({
  environment: { ENGINE_RETRY_S: "60" },
  engine: { ...gate.engine, script: { rules: [{ match: "Hello", completions: ["Hello to you.", "Good again."] }] } },
});

const hello = { messages: [user("Hello")] };

async function statusOf(id: string): Promise<string> {
  return (await harness().task(id)).status;
}

function finish(id: string, body: unknown): Promise<{ status: number; body: Body }> {
  return harness().admin("POST", `/tasks/${id}/finish`, body);
}

Deno.test("finish waits for a running call, which commits; new calls are refused meanwhile", async () => {
  const { id, key } = await harness().createTask();
  gate.close();
  const running = harness().chat(key, hello);
  await until("the engine has the call", () => gate.waiting === 1);
  assert.equal((await harness().task(id)).in_flight, 1);
  const finished = finish(id, { reward: 1, wait_s: 60 });
  await until("the task is closing", async () => await statusOf(id) === "closing");
  const refused = await harness().chat(key, { messages: [user("Hello, second")] });
  assert.equal(refused.status, 503);
  assert.equal(refused.body.error.code, "task_closed");
  assert.equal(refused.headers.get("x-should-retry"), "false");
  assert.equal(refused.headers.get("retry-after"), null);
  gate.open();
  assert.equal((await running).status, 200);
  const { body } = await finished;
  assert.deepEqual([body.status, body.reason, body.result.turns.length], ["finished", null, 1]);
});

Deno.test("finish waits for a running stream to its end", async () => {
  const { id, key } = await harness().createTask();
  gate.close();
  const opening = harness().stream(key, hello);
  await until("the engine has the call", () => gate.waiting === 1);
  const finished = finish(id, { wait_s: 60 });
  await until("the task is closing", async () => await statusOf(id) === "closing");
  gate.open();
  const stream = await opening;
  const frames = await stream.rest();
  assert.deepEqual([stream.end, frames.at(-1).verbatim.turn], ["done", 0]);
  assert.equal((await finished).body.result.turns.length, 1);
});

Deno.test("finish aborts what still runs after its wait: the agent is told, nothing is recorded", async () => {
  const { id, key } = await harness().createTask();
  const first = await harness().chat(key, hello);
  gate.close();
  const next = { messages: [...hello.messages, first.body.choices[0].message, user("More")] };
  const running = harness().chat(key, next);
  await until("the engine has the call", () => gate.waiting === 1);
  const { body } = await finish(id, { wait_s: 0, outcome: "aborted" });
  gate.open();
  const aborted = await running;
  assert.equal(aborted.status, 503);
  assert.equal(aborted.body.error.code, "task_closed");
  assert.equal(aborted.headers.get("x-should-retry"), "false");
  await harness().engineIdle();
  assert.deepEqual([body.status, body.outcome, body.reason], ["finished", "aborted", null]);
  assert.equal(body.result.turns.length, 1);
  assert.equal((await harness().turns(id)).length, 1);
});

Deno.test("finish aborts a running stream after its wait: an error in the stream, then the connection breaks", async () => {
  const { id, key } = await harness().createTask();
  gate.close();
  const opening = harness().stream(key, hello);
  await until("the engine has the call", () => gate.waiting === 1);
  gate.step();
  const stream = await opening;
  const { body } = await finish(id, { wait_s: 0 });
  const frames = await stream.rest();
  gate.open();
  assert.equal(frames.at(-1).error.code, "task_closed");
  assert.equal(stream.end, "broken");
  await harness().engineIdle();
  assert.deepEqual([body.result, body.reason], [null, "nothing was generated"]);
});

Deno.test("finish ends a call that waits for a dead engine", async () => {
  const { id, key } = await harness().createTask();
  const { served } = harness().development;
  await served.refuse();
  const waiting = harness().chat(key, hello);
  await until("the call is in flight", async () => (await harness().task(id)).in_flight === 1);
  const { body } = await finish(id, { wait_s: 0, outcome: "infra" });
  served.listen();
  assert.equal((await waiting).body.error.code, "task_closed");
  assert.deepEqual([body.status, body.outcome], ["finished", "infra"]);
});

Deno.test("two finishes at once give one answer", async () => {
  const { id, key } = await harness().createTask();
  gate.close();
  const running = harness().chat(key, hello);
  await until("the engine has the call", () => gate.waiting === 1);
  const finishing = [finish(id, { reward: 1, wait_s: 60 }), finish(id, { reward: 1, wait_s: 60 })];
  await until("the task is closing", async () => await statusOf(id) === "closing");
  gate.open();
  await running;
  const [first, second] = await Promise.all(finishing);
  assert.equal(first!.status, 200);
  assert.deepEqual([second!.status, second!.body], [first!.status, first!.body]);
});

Deno.test("two finishes at once with different rewards: one holds, the other is a conflict", async () => {
  const { id } = await harness().createTask();
  const answers = await Promise.all([finish(id, { reward: 1 }), finish(id, { reward: 2 })]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
  const { reward } = await harness().task(id);
  assert.equal(answers.find(({ status }) => status === 200)!.body.reward, reward);
});

for (const stream of [false, true]) {
  Deno.test(`a call in flight when its task is deleted commits nothing, ${stream ? "streamed" : "whole"}`, async () => {
    const { id, key } = await harness().createTask();
    gate.close();
    const running = harness().stream(key, { ...hello, stream });
    await until("the engine has the call", () => gate.waiting === 1);
    if (stream) gate.step();
    const answering = stream ? await running : null;
    const deleted = await harness().admin("DELETE", `/tasks/${id}`);
    assert.equal(deleted.body.status, "dropped");
    gate.open();
    const answer = answering ?? await running;
    if (stream) {
      const frames = await answer.rest();
      assert.deepEqual([frames.at(-1).error.code, answer.end], ["task_closed", "broken"]);
    } else {
      assert.equal(answer.status, 503);
      await answer.rest();
    }
    await harness().engineIdle();
    const task = await harness().task(id);
    assert.deepEqual([task.status, task.turns, task.in_flight], ["dropped", 0, 0]);
    assert.equal((await harness().admin("GET", `/tasks/${id}/turns`)).status, 404);
    assert.equal((await harness().chat(key, hello)).status, 401);
  });
}
