/** A client that hangs up while its request waits in the engine's queue. */

import assert from "node:assert/strict";
import { startHarness, user } from "./harness.ts";
import { until } from "./until.ts";

Deno.test("a client that hangs up while its request is queued leaves the queue, and others go on", async () => {
  await using harness = await startHarness({
    engine: { maxRunningRequests: 1, script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
  });
  const { engine } = harness.development;
  const [busy, waiting] = [await harness.createTask(), await harness.createTask()];
  engine.faults.add({ when: { times: 1 }, fault: { kind: "hang", afterTokens: 1 } });
  const running = await harness.stream(busy.key, { messages: [user("Hello")] });
  const hangUp = new AbortController();
  const queued = fetch(`${harness.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${waiting.key}` },
    body: JSON.stringify({ messages: [user("Hello")] }),
    signal: hangUp.signal,
  }).catch((cause) => cause);
  await until("the second is queued", () => engine.queued === 1);
  hangUp.abort();
  await queued;
  await until("the queue is empty", () => engine.queued === 0);
  assert.equal(engine.running, 1);
  running.hangUp();
  await harness.engineIdle();
  assert.equal((await harness.chat(waiting.key, { messages: [user("Hello")] })).status, 200);
  assert.equal((await harness.task(waiting.id)).turns, 1);
  assert.equal((await harness.task(busy.id)).turns, 0);
});
