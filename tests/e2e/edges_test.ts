/** What seldom happens and must hold all the same: odd text, empty replies, crowds, the end of a task's life in mid-call. */

import assert from "node:assert/strict";
import { movableClock, sharedHarness, startHarness, user } from "./harness.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();
const clock = movableClock();

const harness = sharedHarness({
  parts: { clock },
  engine: {
    ...gate.engine,
    script: {
      rules: [
        { match: "Hello", completions: ["Hello to you.", "Good again."] },
        { match: "Silence", completions: ["", "Now I speak."] },
        { match: "Marker", completions: ["It is <|im_start|> and <|endoftext|>, I think."] },
      ],
    },
  },
});

const ODD: readonly (readonly [what: string, text: string])[] = [
  ["half a surrogate pair", "Hello \ud83d there \udc00"],
  ["a NUL", "Hello\u0000there"],
  ["a byte order mark", "\ufeffHello"],
  ["line separators", "Hello\u2028\u2029\r\n\u0085"],
  ["the model's own markers", "Hello<|im_end|>\n<|im_start|>assistant\n<think>\n</think>"],
  ["right-to-left and combining marks", "Hello שלום é\u0301\u0302 🏳️‍🌈"],
  ["a template's own words", "Hello {{ messages }} {% for x in y %}{# no #}"],
];

for (const [what, text] of ODD) {
  Deno.test(`a message with ${what} is answered, recorded and echoed like any other`, async () => {
    const { id, key } = await harness().createTask();
    const messages = [user(text)];
    const first = await harness().chat(key, { messages, max_tokens: 8 });
    assert.equal(first.status, 200, JSON.stringify(first.body));
    const next = [...messages, first.body.choices[0].message, user(`${text} more`)];
    const second = await harness().chat(key, { messages: next, max_tokens: 8 });
    assert.equal(second.status, 200, JSON.stringify(second.body));
    const [, turn] = await harness().turns(id);
    assert.deepEqual([turn.relation, turn.parent], ["append", 0]);
    const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
    assert.equal(body.reason, null);
    assert.equal(body.result.turns.length, 2);
  });
}

for (const stream of [false, true]) {
  Deno.test(`a reply of nothing but a stop token is an empty text, ${stream ? "streamed" : "whole"}, and goes on`, async () => {
    const { id, key } = await harness().createTask();
    const messages = [user("Silence")];
    let message = { role: "assistant", content: "" };
    if (stream) {
      const answer = await harness().stream(key, { messages });
      const frames = await answer.rest();
      assert.deepEqual(frames.map((frame) => frame.choices[0].finish_reason), [null, "stop"]);
    } else {
      const { body } = await harness().chat(key, { messages });
      message = body.choices[0].message;
      assert.deepEqual([message.content, body.choices[0].finish_reason], ["", "stop"]);
      assert.equal(body.usage.completion_tokens, 1);
    }
    const second = await harness().chat(key, { messages: [...messages, message, user("Well?")] });
    assert.equal(second.body.choices[0].message.content, "Now I speak.");
    const [, turn] = await harness().turns(id);
    assert.deepEqual([turn.relation, turn.parent, turn.echo], ["append", 0, "exact"]);
  });
}

Deno.test("special tokens that the model writes out are text to the agent, and their ids are kept", async () => {
  const { id, key } = await harness().createTask();
  const { body } = await harness().chat(key, { messages: [user("Marker")] });
  const { body: finished } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  const decoded = await harness().admin("POST", "/detokenize", {
    tokens: finished.result.completion_token_ids.slice(0, -1),
    skip_special_tokens: false,
  });
  assert.equal(body.choices[0].message.content, decoded.body.text);
});

Deno.test("twenty calls of one task at once are twenty turns, each answered with its own", async () => {
  const { id, key } = await harness().createTask({ history: "branch" });
  const answers = await Promise.all(
    Array.from(
      { length: 20 },
      (_, k) => harness().chat(key, { messages: [user(`Number ${k}`)], max_tokens: 6, return_token_ids: true }),
    ),
  );
  assert.ok(answers.every(({ status }) => status === 200));
  const numbers = answers.map(({ headers }) => Number(headers.get("x-verbatim-turn")));
  assert.deepEqual(numbers.toSorted((a, b) => a - b), Array.from({ length: 20 }, (_, k) => k));
  const { body } = await harness().admin("GET", `/tasks/${id}/result?format=rows`);
  assert.equal(body.rows.length, 20);
  for (const [k, answer] of answers.entries()) {
    const row = body.rows.find((candidate: { path: number[] }) => candidate.path[0] === numbers[k]);
    assert.deepEqual(row.tokens.slice(row.prompt_length), answer.body.choices[0].token_ids);
    assert.deepEqual(row.tokens.slice(0, row.prompt_length), answer.body.prompt_token_ids);
  }
});

Deno.test("two continuations of one turn at once are two turns of one parent", async () => {
  const { id, key } = await harness().createTask({ history: "branch" });
  const first = await harness().chat(key, { messages: [user("Hello")] });
  const next = (text: string) => ({ messages: [user("Hello"), first.body.choices[0].message, user(text)] });
  await Promise.all([harness().chat(key, next("Left")), harness().chat(key, next("Right"))]);
  const turns = await harness().turns(id);
  assert.deepEqual(turns.map((turn) => [turn.parent, turn.echo]), [[null, null], [0, "exact"], [0, "exact"]]);
});

Deno.test("a call in flight when its task expires commits nothing", async () => {
  const { id, key } = await harness().createTask({ ttl_s: 600 });
  gate.close();
  const running = harness().chat(key, { messages: [user("Hello")] });
  await until("the engine has the call", () => gate.waiting === 1);
  clock.forward(600_000);
  gate.open();
  const { status, headers, body } = await running;
  assert.deepEqual([status, body.error.code], [503, "task_closed"]);
  assert.equal(headers.get("x-should-retry"), "false");
  const task = await harness().task(id);
  assert.deepEqual([task.status, task.turns], ["expired", 0]);
});

Deno.test("PUBLIC_URL is where tasks say that they are reached; without it, it is where the caller reached us", async () => {
  await using behindProxy = await startHarness({ environment: { PUBLIC_URL: "https://gateway.example/verbatim/" } });
  const { body } = await behindProxy.admin("POST", "/tasks", {});
  assert.equal(body.base_url, "https://gateway.example/verbatim/v1");
  assert.equal(body.anthropic_base_url, "https://gateway.example/verbatim");
  const byName = await fetch(`${harness().url.replace("127.0.0.1", "localhost")}/tasks`, { method: "POST" });
  assert.match((await byName.json()).base_url, /^http:\/\/localhost:\d+\/v1$/);
});
