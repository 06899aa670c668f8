/** Keys without a task, tasks that open themselves, and tasks that are not captured. */

import assert from "node:assert/strict";
import { type Answered, sharedHarness, startHarness, user } from "./harness.ts";

const script = { rules: [{ match: "Hello", completions: ["Hello to you."] }] };
const hello = { messages: [user("Hello")] };

const harness = sharedHarness({
  environment: { TASK_AUTOCREATE: "on", PASSTHROUGH_KEYS: "EMPTY, other" },
  engine: { script },
});

async function taskIds(): Promise<string[]> {
  const { body } = await harness().admin("GET", "/tasks?limit=1000");
  return body.tasks.map((task: { task_id: string }) => task.task_id);
}

function assertUnrecorded(answer: Answered): void {
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.equal(answer.headers.get("x-verbatim-turn"), "none");
  assert.equal(answer.body.choices[0].message.content, "Hello to you.");
}

Deno.test("a pass-through key is answered by the same renderer and parser, and nothing is recorded", async () => {
  const before = await taskIds();
  assertUnrecorded(await harness().chat("EMPTY", hello));
  assertUnrecorded(await harness().admin("POST", "/k/other/v1/chat/completions", hello));
  const stream = await harness().stream("EMPTY", hello);
  const frames = await stream.rest();
  assert.deepEqual([stream.end, frames.at(-1).verbatim], ["done", { turn: null }]);
  assert.deepEqual(await taskIds(), before);
});

Deno.test("a pass-through key samples anew each time, and as it asks", async () => {
  const request = { messages: [user("Say")], max_tokens: 8, return_token_ids: true };
  const [first, second] = [
    await harness().chat("EMPTY", request, { "x-stainless-retry-count": "1" }),
    await harness().chat("EMPTY", request, { "x-stainless-retry-count": "1" }),
  ];
  assert.notDeepEqual(first.body.choices[0].token_ids, second.body.choices[0].token_ids);
  const greedy = { ...request, temperature: 0 };
  assert.deepEqual(
    (await harness().chat("EMPTY", greedy)).body.choices[0].token_ids,
    (await harness().chat("EMPTY", greedy)).body.choices[0].token_ids,
  );
});

Deno.test("a pass-through key gets the same errors", async () => {
  const refused = await harness().chat("EMPTY", { messages: [] });
  assert.deepEqual([refused.status, refused.body.error.param], [400, "messages"]);
  const biased = await harness().chat("EMPTY", { ...hello, logit_bias: { 999999999: 1 } });
  assert.deepEqual([biased.status, biased.body.error.code], [400, "token_out_of_range"]);
});

Deno.test("TASK_AUTOCREATE opens one task for each unknown key, and the key stays its key", async () => {
  const before = await taskIds();
  const answers = [await harness().chat("my-own-key", hello), await harness().chat("my-own-key", hello)];
  assert.deepEqual(answers.map(({ headers }) => headers.get("x-verbatim-turn")), ["0", "1"]);
  const [opened, ...more] = (await taskIds()).filter((id) => !before.includes(id));
  assert.match(opened!, /^auto-[0-9a-f]{12}$/);
  assert.equal(more.length, 0);
  assert.equal((await harness().task(opened!)).turns, 2);
  await harness().admin("POST", `/tasks/${opened}/finish`, {});
  assert.equal((await harness().chat("my-own-key", hello)).status, 503);
});

Deno.test("first calls of one unknown key at once open one task", async () => {
  const before = await taskIds();
  const answers = await Promise.all(Array.from({ length: 5 }, () => harness().chat("crowded-key", hello)));
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200, 200]);
  assert.equal((await taskIds()).length, before.length + 1);
});

Deno.test("the key of an auto-created task that was dropped opens no other", async () => {
  await harness().chat("dropped-key", hello);
  const { body } = await harness().admin("GET", "/tasks?limit=1000");
  for (const { task_id } of body.tasks) await harness().admin("DELETE", `/tasks/${task_id}`);
  assert.equal((await harness().chat("dropped-key", hello)).status, 401);
});

Deno.test("a task with capture off is answered and not recorded, and says so", async () => {
  const { id, key } = await harness().createTask({ capture: false });
  assertUnrecorded(await harness().chat(key, hello));
  const stream = await harness().stream(key, hello);
  assert.deepEqual((await stream.rest()).at(-1).verbatim, { turn: null });
  const task = await harness().task(id);
  assert.deepEqual([task.turns, task.capture.valid, task.capture.reason], [0, false, "not captured"]);
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, { reward: 1 });
  assert.deepEqual([body.result, body.reason, body.reward], [null, "not captured", 1]);
  assert.equal((await harness().chat(key, hello)).status, 503);
});

Deno.test("a task with capture off lets the agent set its sampling", async () => {
  const { key } = await harness().createTask({ capture: false });
  const greedy = { messages: [user("Say")], max_tokens: 8, return_token_ids: true, temperature: 0 };
  assert.deepEqual(
    (await harness().chat(key, greedy)).body.choices[0].token_ids,
    (await harness().chat(key, greedy)).body.choices[0].token_ids,
  );
});

Deno.test("without TASK_AUTOCREATE and PASSTHROUGH_KEYS neither key opens anything", async () => {
  await using plain = await startHarness({ engine: { script } });
  for (const key of ["EMPTY", "my-own-key"]) assert.equal((await plain.chat(key, hello)).status, 401);
});
