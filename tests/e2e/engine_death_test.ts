/** An engine that dies in mid-stream: the client is told, nothing is recorded, and what was recorded can still be read. */

import assert from "node:assert/strict";
import { startHarness, user } from "./harness.ts";

const script = { rules: [{ match: "Hello", completions: ["Hello to you."] }] };
const hello = { messages: [user("Hello")] };

Deno.test("an engine that dies in mid-stream breaks the stream; later calls are 503, and records stand", async () => {
  await using harness = await startHarness({ engine: { script }, environment: { ENGINE_RETRY_S: "0.1" } });
  const { key, id } = await harness.createTask();
  await harness.chat(key, hello);
  harness.development.engine.faults.add({ fault: { kind: "die", afterTokens: 2 } });
  const stream = await harness.stream(key, { messages: [user("Hello, second")] });
  const frames = await stream.rest();
  assert.equal(frames.at(-1).error.code, "engine_failed");
  assert.equal(stream.end, "broken");
  const after = await harness.chat(key, { messages: [user("Hello, third")] });
  assert.equal(after.status, 503);
  assert.equal(after.body.error.code, "engine_unavailable");
  const { body: finished } = await harness.admin("POST", `/tasks/${id}/finish`, { outcome: "infra" });
  assert.equal(finished.reason, null);
  assert.equal(finished.result.turns.length, 1);
  assert.equal(finished.outcome, "infra");
});
