/** Is it alive, is it ready, and which request was that? */

import assert from "node:assert/strict";
import { sharedHarness, user } from "./harness.ts";

const harness = sharedHarness({ engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } } });

Deno.test("GET /healthz is alive, engine or not", async () => {
  const { served } = harness().development;
  assert.deepEqual((await harness().admin("GET", "/healthz")).body, { status: "ok" });
  await served.refuse();
  const { status } = await harness().admin("GET", "/healthz");
  served.listen();
  assert.equal(status, 200);
});

Deno.test("GET /readyz tells the engine, the renderer's checks and the parsers", async () => {
  const { status, body } = await harness().admin("GET", "/readyz");
  assert.equal(status, 200);
  assert.deepEqual([body.ready, body.reasons], [true, []]);
  const [model, ...more] = body.models;
  assert.equal(more.length, 0);
  assert.equal(model.engine.reachable, true);
  assert.equal(model.engine.weight_version, "default");
  assert.deepEqual([model.renderer.family, model.renderer.reasoning_parser], ["qwen3", "qwen3"]);
  assert.equal(typeof model.renderer.tool_call_parser, "string");
  assert.ok(model.renderer.stop_token_ids.length >= 1);
});

Deno.test("GET /readyz is 503 with the reason while the engine is down, and ready again after", async () => {
  const { served } = harness().development;
  await served.refuse();
  const down = await harness().admin("GET", "/readyz");
  served.listen();
  assert.equal(down.status, 503);
  assert.equal(down.body.ready, false);
  assert.match(down.body.reasons.join(), /engine/i);
  assert.equal(down.body.models[0].engine.reachable, false);
  assert.equal((await harness().admin("GET", "/readyz")).status, 200);
});

Deno.test("a request id that is given comes back on every answer, one is made where none is", async () => {
  const { key } = await harness().createTask();
  const given = { "x-request-id": "trace:1.a-b_c" };
  const answers = [
    await harness().chat(key, { messages: [user("Hello")] }, given),
    await harness().chat(key, { messages: [] }, given),
    await harness().chat("nobody", { messages: [user("Hello")] }, given),
    await harness().admin("GET", "/tasks", undefined, given),
    await harness().admin("GET", "/tasks/none", undefined, given),
    await harness().admin("GET", "/nowhere", undefined, given),
    await harness().admin("GET", "/healthz", undefined, given),
  ];
  assert.deepEqual(answers.map(({ headers }) => headers.get("x-request-id")), answers.map(() => "trace:1.a-b_c"));
  const [first, second] = [await harness().admin("GET", "/healthz"), await harness().admin("GET", "/healthz")];
  assert.match(first.headers.get("x-request-id") ?? "", /^req_[0-9a-f]{24}$/);
  assert.notEqual(first.headers.get("x-request-id"), second.headers.get("x-request-id"));
});

Deno.test("a request id that could not stand in a log line is replaced", async () => {
  for (const bad of ["a b", "x".repeat(129), "a\tb", "é"]) {
    const { headers } = await harness().admin("GET", "/healthz", undefined, { "x-request-id": bad });
    assert.match(headers.get("x-request-id") ?? "", /^req_/);
  }
});

Deno.test("a method that is not served at a path is 404 in Verbatim's shape", async () => {
  const { status, body } = await harness().admin("DELETE", "/healthz");
  assert.equal(status, 404);
  assert.deepEqual(Object.keys(body.error).sort(), ["code", "message", "retryable"]);
  assert.equal(body.error.message, "There is no DELETE /healthz here");
});
