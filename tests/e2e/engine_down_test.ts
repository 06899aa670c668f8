/** An engine that can't be reached, or says nothing: tried again for a while, then 503 or 504; nothing is recorded. */

import assert from "node:assert/strict";
import { countEngineCalls } from "./engine_calls.ts";
import { assertUnharmed } from "./engine_trouble.ts";
import { sharedHarness, user } from "./harness.ts";
import type { Logger } from "../../shared/ports/logger.ts";
import { until } from "./until.ts";

/** How often the gateway has tried an engine again. */
let retries = 0;
const logger: Logger = {
  debug() {},
  info(message) {
    if (message === "Engine call is tried again") retries++;
  },
  warn() {},
  error() {},
};

const harness = sharedHarness({
  parts: { logger },
  environment: { ENGINE_RETRY_S: "1", ENGINE_IDLE_TIMEOUT_S: "0.3" },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
});

const hello = { messages: [user("Hello")] };

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";

  Deno.test(`an engine that is down is 503 engine_unavailable with Retry-After, ${how}`, async () => {
    const { served } = harness().development;
    const task = await harness().createTask();
    await served.refuse();
    try {
      const { status, headers, body } = await harness().chat(task.key, { ...hello, stream });
      assert.equal(status, 503, JSON.stringify(body));
      assert.equal(body.error.code, "engine_unavailable");
      assert.equal(body.error.type, "server_error");
      assert.equal(headers.get("x-should-retry"), "true");
      assert.ok(Number(headers.get("retry-after")) >= 1);
    } finally {
      served.listen();
    }
    await assertUnharmed(harness(), task, hello);
  });

  Deno.test(`an engine that is silent is 504 engine_timeout and is told to abort, ${how}`, async () => {
    const { engine } = harness().development;
    const task = await harness().createTask();
    engine.faults.add({ fault: { kind: "hang", afterTokens: 0 } });
    const { status, headers, body } = await harness().chat(task.key, { ...hello, stream });
    assert.equal(status, 504, JSON.stringify(body));
    assert.equal(body.error.code, "engine_timeout");
    assert.equal(headers.get("x-should-retry"), "true");
    await harness().engineIdle();
    engine.faults.clear();
    await assertUnharmed(harness(), task, hello);
  });
}

Deno.test("an engine that refuses twice and then answers is tried again, and the client never knows", async () => {
  const { engine } = harness().development;
  const { key, id } = await harness().createTask();
  const calls = countEngineCalls(harness());
  engine.faults.add({ when: { times: 2 }, fault: { kind: "http", status: 503, body: "" } });
  const { status, body } = await harness().chat(key, hello);
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.choices[0].message.content, "Hello to you.");
  assert.equal(calls(), 3);
  assert.equal((await harness().task(id)).turns, 1);
  engine.faults.clear();
});

Deno.test("an engine that comes back while it is tried again answers the waiting client", async () => {
  const { served } = harness().development;
  const { key, id } = await harness().createTask();
  await served.refuse();
  const tried = retries;
  const answer = harness().chat(key, hello);
  await until("an attempt has failed", () => retries > tried);
  served.listen();
  const { status, body } = await answer;
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal((await harness().task(id)).turns, 1);
});

Deno.test("an engine that goes silent in mid-stream breaks the stream with an error in it", async () => {
  const { engine } = harness().development;
  const task = await harness().createTask();
  engine.faults.add({ fault: { kind: "hang", afterTokens: 2 } });
  const stream = await harness().stream(task.key, hello);
  const frames = await stream.rest();
  assert.equal(stream.status, 200);
  assert.equal(frames.at(-1).error.code, "engine_timeout");
  assert.equal(stream.end, "broken");
  await harness().engineIdle();
  engine.faults.clear();
  await assertUnharmed(harness(), task, hello);
});

Deno.test("slow tokens are no silence: a stream longer than the idle timeout is read to its end", async () => {
  const { engine } = harness().development;
  const { key } = await harness().createTask();
  engine.faults.add({ fault: { kind: "delay", tokenMs: 120 } });
  const stream = await harness().stream(key, hello);
  const frames = await stream.rest();
  engine.faults.clear();
  assert.equal(stream.end, "done");
  assert.equal(frames.filter((frame) => frame.choices?.[0]?.delta?.content).length > 1, true);
});

Deno.test("generate answers the same troubles in Verbatim's own shape", async () => {
  const { engine, served } = harness().development;
  await served.refuse();
  const down = await harness().admin("POST", "/generate", { input_ids: [9707] });
  served.listen();
  assert.equal(down.status, 503);
  assert.deepEqual([down.body.error.code, down.body.error.retryable], ["engine_unavailable", true]);
  assert.ok(down.headers.get("retry-after"));
  engine.faults.add({ fault: { kind: "hang", afterTokens: 0 } });
  const silent = await harness().admin("POST", "/generate", { input_ids: [9707] });
  engine.faults.clear();
  assert.equal(silent.status, 504);
  assert.equal(silent.body.error.code, "engine_timeout");
  await until("the engine is told", () => engine.running === 0);
});
