/** Anthropic messages that are refused or fail: the API's shapes, type names and words. */

import assert from "node:assert/strict";
import { ask, post } from "./dialect_client.ts";
import { type Answered, sharedHarness } from "./harness.ts";

const harness = sharedHarness({
  environment: { MAX_CONTEXT_LEN: "4096", ENGINE_RETRY_S: "0" },
  engine: { script: { rules: [{ match: "Count", completions: ["One two three."] }] } },
});

const MESSAGES = { path: "/v1/messages" };
const COUNT = { path: "/v1/messages/count_tokens" };

function request(text: string): Record<string, unknown> {
  return { model: "m", max_tokens: 200, messages: [{ role: "user", content: text }] };
}

/** A refusal in Anthropic's shape. */
function assertRefused({ status, headers, body }: Answered, expected: { status: number; type: string; code: string }) {
  assert.deepEqual(Object.keys(body).sort(), ["error", "request_id", "type"]);
  assert.equal(body.type, "error");
  assert.deepEqual(
    { status, type: body.error.type, code: body.error.code },
    expected,
    JSON.stringify(body),
  );
  assert.equal(body.request_id, headers.get("request-id"));
  assert.equal(headers.get("x-verbatim-turn"), "none");
  assert.ok(["true", "false"].includes(headers.get("x-should-retry") ?? ""));
}

Deno.test("refusals name what is wrong in Anthropic's words", async () => {
  const { key } = await harness().createTask();
  const invalid = { status: 400, type: "invalid_request_error", code: "invalid_request" };
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
  const said = (content: unknown) => ({ messages: [{ role: "user", content: "Hi" }, { role: "assistant", content }] });
  for (
    const [body, expected] of [
      [{}, invalid],
      [{ messages: [] }, invalid],
      [{ messages: [{ role: "tool", content: "x" }] }, invalid],
      [{ ...request("Count"), system: 5 }, invalid],
      [{ ...request("Count"), max_tokens: 0 }, invalid],
      [{ ...request("Count"), tool_choice: { type: "tool", name: "none of these" } }, invalid],
      [said([{ type: "thinking", thinking: "x", signature: 7 }]), invalid],
      [said([{ type: "image" }]), { ...invalid, code: "unsupported" }],
      [{ messages: [{ role: "user", content: [image] }] }, { ...invalid, code: "unsupported" }],
      [{ messages: [{ role: "user", content: [{ type: "document" }] }] }, { ...invalid, code: "unsupported" }],
    ] as const
  ) {
    assertRefused(await post(harness(), key, body, MESSAGES), expected);
    assertRefused(await post(harness(), key, body, COUNT), expected);
  }
  assertRefused(await post(harness(), "nobody", request("Count"), MESSAGES), {
    status: 401,
    type: "authentication_error",
    code: "unauthorized",
  });
});

Deno.test("a conversation that the server should keep is refused so that clients send it whole", async () => {
  const { key } = await harness().createTask();
  const { status, body } = await post(harness(), key, { ...request("Count"), thread: { type: "create" } }, MESSAGES);
  assert.deepEqual([status, body.error.type], [400, "invalid_request_error"]);
  assert.equal(body.error.details.error_code, "thread_unsupported_request");
  assert.deepEqual(body.error.details.unsupported, ["thread"]);
});

Deno.test("a prompt that is too long is refused in the words that scaffolds look for", async () => {
  const { key, id } = await harness().createTask();
  const long = request("word ".repeat(5000));
  const { body: counted } = await post(harness(), key, long, COUNT);
  const refused = await post(harness(), key, long, MESSAGES);
  assertRefused(refused, { status: 400, type: "invalid_request_error", code: "context_length_exceeded" });
  assert.equal(refused.body.error.message, `prompt is too long: ${counted.input_tokens} tokens > 4096 maximum`);
  assert.equal((await harness().task(id)).turns, 0);
});

Deno.test("failures have Anthropic's type names, and say whether to try again", async () => {
  const { faults } = harness().development.engine;
  const busy = await harness().createTask({ max_turns: 1 });
  await ask(harness(), busy.key, request("Count"), MESSAGES);
  const spent = await post(harness(), busy.key, request("Work"), MESSAGES);
  assertRefused(spent, { status: 429, type: "rate_limit_error", code: "budget_exceeded" });
  assert.equal(spent.headers.get("x-should-retry"), "false");

  const { key, id } = await harness().createTask();
  faults.add({ when: { times: 1 }, fault: { kind: "http", status: 503 } });
  const down = await post(harness(), key, request("Count"), MESSAGES);
  assertRefused(down, { status: 503, type: "overloaded_error", code: "engine_unavailable" });
  assert.equal(down.headers.get("x-should-retry"), "true");
  assert.ok(down.headers.get("retry-after"));
  faults.add({ when: { times: 1 }, fault: { kind: "http", status: 500 } });
  assertRefused(await post(harness(), key, request("Count"), MESSAGES), {
    status: 502,
    type: "api_error",
    code: "engine_failed",
  });

  await harness().admin("POST", `/tasks/${id}/finish`, {});
  const closed = await post(harness(), key, request("Count"), MESSAGES);
  assertRefused(closed, { status: 503, type: "api_error", code: "task_closed" });
  assert.deepEqual([closed.headers.get("x-should-retry"), closed.headers.get("retry-after")], ["false", null]);
});
