/** A gateway that is asked to stop: answers under way may end, new requests are sent elsewhere, what is left is broken. */

import assert from "node:assert/strict";
import { createListLogger } from "../fixtures/list_logger.ts";
import { startHarness, user } from "./harness.ts";
import { until } from "./until.ts";

const script = { rules: [{ match: "Hello", completions: ["Hello to you."] }] };
const hello = { messages: [user("Hello")] };

Deno.test("a gateway that stops lets the call under way end and refuses new ones as not ready", async () => {
  await using harness = await startHarness({ engine: { script } });
  const { key } = await harness.createTask();
  const { engine } = harness.development;
  engine.faults.add({ when: { times: 1 }, fault: { kind: "hang", afterTokens: 2 } });
  const stream = await harness.stream(key, hello);
  await stream.next();
  await harness.engineRuns(1);
  const other = await harness.stream(key, { messages: [user("Hello, second")] });
  const closing = harness.gateway.close(60_000);
  const refused = await harness.chat(key, hello);
  assert.equal(refused.status, 503);
  assert.equal(refused.body.error.code, "not_ready");
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal(refused.headers.get("x-should-retry"), "true");
  const frames = await other.rest();
  assert.equal(other.end, "done");
  assert.equal(frames.at(-1).verbatim.turn, 0);
  stream.hangUp();
  await closing;
});

Deno.test("a gateway that stops breaks what goes on beyond its grace, and aborts it on the engine", async () => {
  await using harness = await startHarness({ engine: { script } });
  const { key } = await harness.createTask();
  harness.development.engine.faults.add({ fault: { kind: "hang", afterTokens: 2 } });
  const stream = await harness.stream(key, hello);
  await stream.next();
  await harness.engineRuns(1);
  await harness.gateway.close(10);
  await stream.rest();
  assert.equal(stream.end, "broken");
  await harness.engineIdle();
});

Deno.test("calls that still wait when the grace is over are told to try again, in their dialect", async () => {
  await using harness = await startHarness({ engine: { script } });
  const { key } = await harness.createTask();
  assert.equal((await harness.admin("POST", "/engines/update", { action: "pause" })).status, 200);
  const waiting = harness.chat(key, hello);
  const { gate } = harness.development.services.models.default.generations;
  await until("the call waits", () => gate.waiting === 1);
  await harness.gateway.close(10);
  const { status, body, headers } = await waiting;
  assert.deepEqual([status, body.error.code, headers.get("x-should-retry")], [503, "not_ready", "true"]);
});

Deno.test("what still runs when the services close is told to try again, and all of it is written before the store closes", async () => {
  const logger = createListLogger();
  const harness = await startHarness({ engine: { script }, parts: { logger } });
  const { key } = await harness.createTask();
  harness.development.engine.faults.add({ fault: { kind: "hang", afterTokens: 2 } });
  const calls = Array.from({ length: 8 }, (_, k) => harness.chat(key, { messages: [user(`Hello, number ${k}`)] }));
  await harness.engineRuns(calls.length);
  await harness.development.close();
  const answers = await Promise.all(calls);
  await harness.gateway.close();
  for (const { status, body } of answers) assert.deepEqual([status, body.error.code], [503, "not_ready"]);
  assert.deepEqual(logger.lines.filter(({ level }) => level === "error"), []);
});
