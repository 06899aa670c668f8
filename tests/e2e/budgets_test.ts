/** Budgets of a task: turns, tokens, context. What is over is refused in the dialect, for good, and consumes nothing. */

import assert from "node:assert/strict";
import { countEngineCalls } from "./engine_calls.ts";
import { type Answered, sharedHarness, user } from "./harness.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const harness = sharedHarness({
  engine: { ...gate.engine, script: { rules: [{ match: "Hello", completions: ["Hello to you.", "Good again."] }] } },
});

const hello = { messages: [user("Hello")] };

function assertExceeded(answer: Answered, budget: string): void {
  assert.equal(answer.status, 429, JSON.stringify(answer.body));
  const { error } = answer.body;
  assert.deepEqual([error.code, error.type], ["budget_exceeded", "rate_limit_error"]);
  assert.match(error.message, new RegExp(budget));
  assert.equal(answer.headers.get("x-should-retry"), "false");
  assert.equal(answer.headers.get("retry-after"), null);
}

Deno.test("max_turns refuses the turn that would be too many", async () => {
  const { id, key } = await harness().createTask({ max_turns: 2 });
  await harness().chat(key, hello);
  await harness().chat(key, hello);
  const calls = countEngineCalls(harness());
  assertExceeded(await harness().chat(key, hello), "max_turns");
  assertExceeded(await harness().chat(key, { ...hello, stream: true }), "max_turns");
  assert.equal(calls(), 0);
  assert.equal((await harness().task(id)).turns, 2);
  assert.equal((await harness().admin("POST", `/tasks/${id}/finish`, {})).body.reason, null);
});

Deno.test("max_turns counts calls that are running, and a replay is no turn", async () => {
  const { id, key } = await harness().createTask({ max_turns: 1 });
  gate.close();
  const running = harness().chat(key, hello);
  await until("the engine has the call", () => gate.waiting === 1);
  assertExceeded(await harness().chat(key, { messages: [user("Hello, second")] }), "max_turns");
  gate.open();
  const first = await running;
  assert.equal(first.status, 200);
  const again = await harness().chat(key, hello, { "x-stainless-retry-count": "1" });
  assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
  assert.equal((await harness().task(id)).turns, 1);
});

Deno.test("calls at once never make more turns than max_turns", async () => {
  const { id, key } = await harness().createTask({ max_turns: 3 });
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, k) => harness().chat(key, { messages: [user(`Hello ${k}`)] })),
  );
  const { turns } = await harness().task(id);
  assert.ok(turns <= 3 && turns === answers.filter(({ status }) => status === 200).length, `${turns} turns`);
  for (const answer of answers) if (answer.status !== 200) assertExceeded(answer, "max_turns");
});

Deno.test("max_turns counts the turns that were committed while a request was still being sent", async () => {
  const { id, key } = await harness().createTask({ max_turns: 1 });
  const body = JSON.stringify({ messages: [user("Hello, slowly")] });
  const rest = Promise.withResolvers<void>();
  const slow = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(body.slice(0, 10)));
      await rest.promise;
      controller.enqueue(new TextEncoder().encode(body.slice(10)));
      controller.close();
    },
  });
  const answer = fetch(`${harness().url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: slow,
  });
  assert.equal((await harness().chat(key, hello)).status, 200);
  rest.resolve();
  const response = await answer;
  assertExceeded({ status: response.status, headers: response.headers, body: await response.json() }, "max_turns");
  assert.equal((await harness().task(id)).turns, 1);
});

Deno.test("a failed call uses no turn of max_turns", async () => {
  const { key } = await harness().createTask({ max_turns: 1 });
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "http", status: 500, body: "no", contentType: "text/plain" } });
  assert.equal((await harness().chat(key, hello)).status, 502);
  faults.clear();
  assert.equal((await harness().chat(key, hello)).status, 200);
});

Deno.test("max_total_tokens limits what may be sampled, then refuses", async () => {
  const { id, key } = await harness().createTask({ max_total_tokens: 30 });
  const first = await harness().chat(key, hello);
  const used = first.body.usage.total_tokens;
  assert.ok(used < 21);
  const second = await harness().chat(key, hello);
  const [, turn] = await harness().turns(id);
  assert.equal(turn.sampling.max_new_tokens, 30 - used - turn.prompt_tokens);
  assert.equal(second.status, 200);
  assertExceeded(await harness().chat(key, hello), "max_total_tokens");
  const { tokens } = await harness().task(id);
  assert.ok(tokens.prompt + tokens.completion <= 30);
});

Deno.test("max_total_tokens smaller than the first prompt refuses it before the engine", async () => {
  const { id, key } = await harness().createTask({ max_total_tokens: 3 });
  const calls = countEngineCalls(harness());
  assertExceeded(await harness().chat(key, hello), "max_total_tokens");
  assert.equal(calls(), 0);
  assert.deepEqual((await harness().task(id)).tokens, { prompt: 0, completion: 0 });
});

Deno.test("max_context_tokens is a context limit, in OpenAI's words", async () => {
  const { id, key } = await harness().createTask({ max_context_tokens: 5 });
  const { status, body } = await harness().chat(key, hello);
  assert.equal(status, 400);
  assert.equal(body.error.code, "context_length_exceeded");
  assert.match(body.error.message, /^This model's maximum context length is 5 tokens\./);
  assert.equal((await harness().task(id)).turns, 0);
});
