/** Silent streams: the headers leave in time, keep-alives fill the silence, and what fails later fails in the stream. */

import assert from "node:assert/strict";
import { EventStream } from "./event_stream.ts";
import { sharedHarness, user } from "./harness.ts";
import { joinChunks } from "./join_chunks.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const harness = sharedHarness({
  services: { keepAliveMs: 20 },
  environment: { ENGINE_RETRY_S: "0" },
  engine: { ...gate.engine, script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
});

const hello = { messages: [user("Hello")] };

Deno.test("headers leave before the first token, and keep-alives come while nothing else does", async () => {
  const { key } = await harness().createTask();
  gate.close();
  const stream = await harness().stream(key, hello);
  assert.equal(stream.status, 200);
  await stream.comment();
  await stream.comment();
  await until("the engine waits", () => gate.waiting === 1);
  gate.step();
  const role = await stream.next();
  const first = await stream.next();
  await stream.comment();
  gate.open();
  const frames = [role, first, ...await stream.rest()];
  assert.equal(joinChunks(frames).message.content, "Hello to you.");
  assert.equal(stream.end, "done");
});

Deno.test("a failure after the headers is an error in the stream, then the connection breaks", async () => {
  const { engine } = harness().development;
  const { id, key } = await harness().createTask({ on_abort: "fail" });
  gate.close();
  const stream = await harness().stream(key, hello);
  await stream.comment();
  await until("the engine waits", () => gate.waiting === 1);
  await engine.app.request("/abort_request", { method: "POST", body: JSON.stringify({ abort_all: true }) });
  const frames = await stream.rest();
  gate.open();
  assert.equal(stream.status, 200);
  assert.deepEqual(frames.map((frame) => frame.error?.code), ["engine_failed"]);
  assert.equal(stream.end, "broken");
  assert.equal((await harness().task(id)).turns, 0);
  assert.equal((await harness().chat(key, hello)).status, 200);
});

Deno.test("a client that hangs up in the silence frees the engine", async () => {
  const { id, key } = await harness().createTask();
  gate.close();
  const stream = await harness().stream(key, hello);
  await stream.comment();
  await harness().engineRuns(1);
  stream.hangUp();
  await harness().engineIdle();
  gate.open();
  assert.equal((await harness().task(id)).turns, 0);
});

Deno.test("generate keeps its stream alive, too", async () => {
  gate.close();
  const stream = await EventStream.open(`${harness().url}/generate`, {
    headers: {},
    body: JSON.stringify({ messages: [user("Hello")], stream: true }),
  });
  await stream.comment();
  gate.open();
  const frames = await stream.rest();
  assert.equal(frames.at(-1).done, true);
  assert.equal(stream.end, "done");
});
