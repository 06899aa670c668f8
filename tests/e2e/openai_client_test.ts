/** The stock OpenAI client against the gateway: it understands answers, streams and errors, and its retries are told apart. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import { countEngineCalls } from "./engine_calls.ts";
import { type CreatedTask, sharedHarness } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const harness = sharedHarness({
  environment: { ENGINE_RETRY_S: "0", MAX_CONTEXT_LEN: "2000" },
  engine: {
    ...gate.engine,
    script: {
      rules: [
        { match: "Hello", completions: ["Hello 👋🏽 to you.", "Good again."] },
        { match: "Work", completions: [think("Call it.") + "On it.\n" + toolCall("run", { path: "x" }), "Done."] },
      ],
    },
  },
});

type Messages = OpenAI.Chat.ChatCompletionMessageParam[];

const hello: Messages = [{ role: "user", content: "Hello" }];

async function begin(
  options: { maxRetries?: number; timeout?: number } = {},
): Promise<{ task: CreatedTask; client: OpenAI }> {
  const task = await harness().createTask();
  const client = new OpenAI({ baseURL: `${harness().url}/v1`, apiKey: task.key, maxRetries: 0, ...options });
  return { task, client };
}

Deno.test("the client runs a tool loop, streamed and whole, that is one line of turns", async () => {
  const { task, client } = await begin();
  const tools = [tool("run", ["path"])];
  const messages: Messages = [{ role: "user", content: "Work" }];
  const stream = client.chat.completions.stream({ model: "any", messages, tools });
  const first = (await stream.finalChatCompletion()).choices[0]!;
  assert.equal(first.finish_reason, "tool_calls");
  assert.equal(first.message.content?.trim(), "On it.");
  const [call] = first.message.tool_calls ?? [];
  assert.ok(call?.type === "function");
  assert.deepEqual(JSON.parse(call.function.arguments), { path: "x" });
  messages.push(first.message, { role: "tool", tool_call_id: call.id, content: "it ran" });
  const second = await client.chat.completions.create({ model: "any", messages, tools });
  assert.equal(second.choices[0]?.message.content, "Done.");
  const { body } = await harness().admin("POST", `/tasks/${task.id}/finish`, { reward: 1 });
  assert.deepEqual([body.reason, body.result.turns.length, body.other_rows], [null, 2, 0]);
});

Deno.test("the client reads a stream chunk by chunk, with usage and logprobs", async () => {
  const { client } = await begin();
  const stream = await client.chat.completions.create({
    model: "any",
    messages: hello,
    stream: true,
    logprobs: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  let logprobs = 0;
  let usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    logprobs += chunk.choices[0]?.logprobs?.content?.length ?? 0;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, "Hello 👋🏽 to you.");
  assert.equal(logprobs, usage?.completion_tokens);
});

Deno.test("the client lists models", async () => {
  const { client } = await begin();
  const models = await Array.fromAsync(client.models.list());
  assert.equal((await client.models.retrieve(models[0]!.id)).id, models[0]!.id);
});

Deno.test("the client tries again after an engine's failure, and the retry makes the one turn", async () => {
  const { task, client } = await begin({ maxRetries: 2 });
  const { faults } = harness().development.engine;
  const calls = countEngineCalls(harness());
  faults.add({ when: { times: 1 }, fault: { kind: "http", status: 500, body: "no", contentType: "text/plain" } });
  const answer = await client.chat.completions.create({ model: "any", messages: hello });
  assert.equal(answer.choices[0]?.message.content, "Hello 👋🏽 to you.");
  assert.equal(calls(), 2);
  faults.clear();
  assert.equal((await harness().task(task.id)).turns, 1);
});

Deno.test("the client does not try again on a closed task, an unknown key, an overflow or a bad request", async () => {
  const { task, client } = await begin({ maxRetries: 3 });
  let requests = 0;
  const counting = (key: string) =>
    client.withOptions({
      apiKey: key,
      fetch: (url: string | URL | Request, init?: RequestInit) => {
        requests++;
        return fetch(url, init);
      },
    });
  const fails = async (key: string, messages: Messages, expected: { status: number; code: string }) => {
    requests = 0;
    await assert.rejects(counting(key).chat.completions.create({ model: "any", messages }), (error) => {
      assert.ok(error instanceof OpenAI.APIError);
      assert.deepEqual({ status: error.status, code: error.code }, expected);
      assert.ok(error.requestID);
      return true;
    });
    assert.equal(requests, 1);
  };
  await fails(task.key, [{ role: "user", content: "a ".repeat(3000) }], {
    status: 400,
    code: "context_length_exceeded",
  });
  await fails(task.key, [], { status: 400, code: "invalid_request" });
  await fails("unknown", hello, { status: 401, code: "unauthorized" });
  await harness().admin("POST", `/tasks/${task.id}/finish`, {});
  await fails(task.key, hello, { status: 503, code: "task_closed" });
});

Deno.test("the client's stream fails where the engine breaks off, with the error's own code", async () => {
  const { task, client } = await begin();
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "cut", afterTokens: 2 } });
  const stream = await client.chat.completions.create({ model: "any", messages: hello, stream: true });
  await assert.rejects(Array.fromAsync(stream), (error) => {
    assert.ok(error instanceof OpenAI.APIError);
    assert.equal(error.code, "engine_failed");
    return true;
  });
  faults.clear();
  assert.equal((await harness().task(task.id)).turns, 0);
});

Deno.test("the client that gives up on a slow answer and asks again is answered once", async () => {
  const { task, client } = await begin();
  gate.close();
  const stopped = new AbortController();
  const first = client.chat.completions.create({ model: "any", messages: hello }, { signal: stopped.signal });
  await until("the engine has the call", () => gate.waiting === 1);
  stopped.abort();
  await assert.rejects(first, OpenAI.APIUserAbortError);
  await harness().engineIdle();
  gate.open();
  const again = await client.chat.completions.create({ model: "any", messages: hello }, {
    headers: { "x-stainless-retry-count": "1" },
  });
  assert.equal(again.choices[0]?.message.content, "Hello 👋🏽 to you.");
  assert.equal((await harness().task(task.id)).turns, 1);
});
