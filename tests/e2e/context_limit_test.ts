/** Prompts that leave no room for a reply: refused in OpenAI's words before the engine is called, with nothing consumed. */

import assert from "node:assert/strict";
import { countEngineCalls } from "./engine_calls.ts";
import { sharedHarness, user } from "./harness.ts";

const LIMIT = 200;

const harness = sharedHarness({
  environment: { MAX_CONTEXT_LEN: String(LIMIT) },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you.", "Good."] }] } },
});

const hello = [user("Hello")];

/** A prompt of exactly this many tokens. */
async function promptOf(tokens: number): Promise<{ messages: unknown[] }> {
  const count = async (words: number) => {
    const { body } = await harness().admin("POST", "/tokenize", { messages: [user("Hello" + " a".repeat(words))] });
    return body.count;
  };
  const words = tokens - await count(0);
  assert.equal(await count(words), tokens);
  return { messages: [user("Hello" + " a".repeat(words))] };
}

for (const stream of [false, true]) {
  Deno.test(`a prompt that fills the context is 400 context_length_exceeded, ${stream ? "streamed" : "whole"}`, async () => {
    const { key, id } = await harness().createTask();
    const calls = countEngineCalls(harness());
    const { status, headers, body } = await harness().chat(key, { ...await promptOf(LIMIT), stream });
    assert.equal(status, 400, JSON.stringify(body));
    assert.deepEqual(body, {
      error: {
        message: `This model's maximum context length is ${LIMIT} tokens. However, you requested ${LIMIT + 1} tokens ` +
          `(${LIMIT} in the messages, 1 in the completion). Please reduce the length of the messages.`,
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    });
    assert.equal(headers.get("x-should-retry"), "false");
    assert.equal(headers.get("retry-after"), null);
    assert.equal(calls(), 0);
    const task = await harness().task(id);
    assert.equal(task.turns, 0);
    assert.deepEqual(task.tokens, { prompt: 0, completion: 0 });
    assert.equal(task.capture.valid, true);
  });
}

Deno.test("a prompt that leaves room for one token gets one", async () => {
  const { key, id } = await harness().createTask();
  const { status, body } = await harness().chat(key, await promptOf(LIMIT - 1));
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.usage.completion_tokens, 1);
  assert.equal(body.choices[0].finish_reason, "length");
  assert.deepEqual((await harness().task(id)).tokens, { prompt: LIMIT - 1, completion: 1 });
});

Deno.test("a token limit beyond the context is clipped to what is left, not refused", async () => {
  const { key, id } = await harness().createTask();
  const { status } = await harness().chat(key, { ...await promptOf(LIMIT - 20), max_tokens: 1000 });
  assert.equal(status, 200);
  const [turn] = await harness().turns(id);
  assert.equal(turn.sampling.max_new_tokens, 20);
});

Deno.test("without a limit a turn may use what is left of the context", async () => {
  const { key, id } = await harness().createTask();
  await harness().chat(key, await promptOf(LIMIT - 30));
  const [turn] = await harness().turns(id);
  assert.equal(turn.sampling.max_new_tokens, 30);
});

Deno.test("an overflow consumes nothing: the turn before stands, and a shorter request goes on from it", async () => {
  const { key, id } = await harness().createTask();
  const first = await harness().chat(key, { messages: hello });
  const echoed = [...hello, first.body.choices[0].message];
  const before = await harness().task(id);
  const refused = await harness().chat(key, { messages: [...echoed, user("a ".repeat(LIMIT))] });
  assert.equal(refused.body.error.code, "context_length_exceeded");
  assert.deepEqual(await harness().task(id), before);
  await harness().chat(key, { messages: [...echoed, user("More")] });
  const [, turn] = await harness().turns(id);
  assert.deepEqual([turn.relation, turn.parent, turn.echo], ["append", 0, "exact"]);
  assert.equal((await harness().task(id)).capture.valid, true);
});

Deno.test("a task's own context limit counts where it is lower", async () => {
  const { key, id } = await harness().createTask({ max_context_tokens: 50 });
  const { status, body } = await harness().chat(key, await promptOf(50));
  assert.equal(status, 400);
  assert.match(body.error.message, /^This model's maximum context length is 50 tokens\. However, you requested 51 /);
  assert.equal((await harness().task(id)).turns, 0);
  assert.equal((await harness().chat(key, { messages: hello })).status, 200);
  const [turn] = await harness().turns(id);
  assert.equal(turn.sampling.max_new_tokens, 50 - turn.prompt_tokens);
});

Deno.test("generate refuses a prompt that fills the context in the same words", async () => {
  const calls = countEngineCalls(harness());
  const { status, body } = await harness().admin("POST", "/generate", { input_ids: Array(LIMIT).fill(1) });
  assert.equal(status, 400);
  assert.equal(body.error.code, "context_length_exceeded");
  assert.match(body.error.message, /^This model's maximum context length is 200 tokens\. However, you requested 201 /);
  assert.deepEqual(body.error.details, {
    max_context_tokens: LIMIT,
    prompt_tokens: LIMIT,
    requested_tokens: LIMIT + 1,
  });
  assert.equal(calls(), 0);
});
