/** Requests that a trainer got wrong, on Verbatim's own endpoints: refused with the field's name, in Verbatim's own shape. */

import assert from "node:assert/strict";
import { countEngineCalls } from "./engine_calls.ts";
import { type Answered, sharedHarness, user } from "./harness.ts";

const harness = sharedHarness();

function assertRefused(answer: Answered, expected: { status: number; code: string; field?: string | null }): void {
  assert.equal(answer.status, expected.status, JSON.stringify(answer.body));
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  const { code, message, retryable, details } = answer.body.error;
  assert.equal(code, expected.code);
  assert.equal(typeof message, "string");
  assert.equal(retryable, false);
  if (expected.field !== undefined) assert.equal(details.field, expected.field);
  assert.ok(answer.headers.get("x-request-id"));
}

type Case = readonly [method: string, path: string, body: unknown, field: string];

const UNKNOWN: readonly Case[] = [
  ["POST", "/tasks", { task_name: "x" }, "task_name"],
  ["POST", "/tasks", { main: { tools: "x" } }, "main.tools"],
  ["POST", "/tasks", { sampling: { temperature: 1 } }, "sampling.temperature"],
  ["POST", "/tasks", { sampling: { fixed: { temp: 1 } } }, "sampling.fixed.temp"],
  ["POST", "/tasks/ID/finish", { rewards: 1 }, "rewards"],
  ["PUT", "/tasks/ID/reward", { reward: 1, note: "x" }, "note"],
  ["GET", "/tasks?groups=x", undefined, "groups"],
  ["GET", "/tasks/ID/result?form=rows", undefined, "form"],
  ["POST", "/generate", { input_ids: [1], stop: ["a"] }, "stop"],
  ["POST", "/generate", { input_ids: [1], sampling_params: { max_tokens: 5 } }, "sampling_params.max_tokens"],
  ["POST", "/tokenize", { prompt: "a", text: "b" }, "text"],
  ["POST", "/tokenize/increment", { messages: [], appended: [user("a")], closed: true, last: 1 }, "last"],
  ["POST", "/tokenize/decode", { tokens: [1], ids: [1] }, "ids"],
  ["POST", "/detokenize", { tokens: [1], ids: [1] }, "ids"],
  ["POST", "/tokenize/parse", { text: "a", parser: "qwen" }, "parser"],
  ["POST", "/parse_function_call", { text: "a", tools: [], parser: "qwen" }, "parser"],
  ["POST", "/separate_reasoning", { text: "a", parser: "qwen3" }, "parser"],
];

for (const [method, path, body, field] of UNKNOWN) {
  Deno.test(`${method} ${path} refuses the unknown field ${field}`, async () => {
    const { id } = await harness().createTask();
    const answer = await harness().admin(method, path.replace("ID", id), body);
    assertRefused(answer, { status: 400, code: "unknown_field", field });
  });
}

const WRONG: readonly Case[] = [
  ["POST", "/tasks", { task_id: "a b" }, "task_id"],
  ["POST", "/tasks", { task_id: "" }, "task_id"],
  ["POST", "/tasks", { task_id: "x".repeat(129) }, "task_id"],
  ["POST", "/tasks", { task_id: 5 }, "task_id"],
  ["POST", "/tasks", { rollout_id: 1.5 }, "rollout_id"],
  ["POST", "/tasks", { metadata: [] }, "metadata"],
  ["POST", "/tasks", { ttl_s: 0 }, "ttl_s"],
  ["POST", "/tasks", { max_turns: 0 }, "max_turns"],
  ["POST", "/tasks", { max_turns: "3" }, "max_turns"],
  ["POST", "/tasks", { max_context_tokens: 1e9 }, "max_context_tokens"],
  ["POST", "/tasks", { capture: "yes" }, "capture"],
  ["POST", "/tasks", { history: "free" }, "history"],
  ["POST", "/tasks", { echo: "loose" }, "echo"],
  ["POST", "/tasks", { on_repeat: "never" }, "on_repeat"],
  ["POST", "/tasks", { main: { header: { "x-a": 5 } } }, "main.header.x-a"],
  ["POST", "/tasks", { sampling: { fixed: { temperature: "hot" } } }, "sampling.fixed.temperature"],
  ["POST", "/tasks", { sampling: { fixed: { top_p: 0 } } }, "sampling.fixed.top_p"],
  ["POST", "/tasks", { sampling: { agent_may_set: ["mood"] } }, "sampling.agent_may_set.0"],
  ["POST", "/tasks", { train_roles: ["hero"] }, "train_roles.0"],
  ["POST", "/tasks/ID/finish", { outcome: "won" }, "outcome"],
  ["POST", "/tasks/ID/finish", { reward: "high" }, "reward"],
  ["POST", "/tasks/ID/finish", { wait_s: -1 }, "wait_s"],
  ["PUT", "/tasks/ID/reward", {}, "reward"],
  ["PUT", "/tasks/ID/reward", { reward: 1, per_turn: { first: 1 } }, "per_turn.first"],
  ["GET", "/tasks?limit=0", undefined, "limit"],
  ["GET", "/tasks?limit=many", undefined, "limit"],
  ["GET", "/tasks?status=lost", undefined, "status"],
  ["GET", "/tasks/ID/result?format=csv", undefined, "format"],
  ["GET", "/tasks/ID/result?roles=main,hero", undefined, "roles.1"],
  ["POST", "/generate", {}, "input_ids"],
  ["POST", "/generate", { input_ids: [1], messages: [user("a")] }, "input_ids"],
  ["POST", "/generate", { input_ids: [] }, "input_ids"],
  ["POST", "/generate", { input_ids: [1.5] }, "input_ids.0"],
  ["POST", "/generate", { input_ids: ["1"] }, "input_ids.0"],
  ["POST", "/generate", { messages: [] }, "messages"],
  ["POST", "/generate", { messages: ["a"] }, "messages.0"],
  ["POST", "/generate", { messages: [{ role: "user", content: 5 }] }, "messages.0.content"],
  ["POST", "/generate", { input_ids: [1], stream: "yes" }, "stream"],
  ["POST", "/generate", { input_ids: [1], sampling_params: { top_k: 0 } }, "sampling_params.top_k"],
  ["POST", "/tokenize", {}, "prompt"],
  ["POST", "/tokenize", { prompt: "a", messages: [user("a")] }, "prompt"],
  ["POST", "/tokenize", { prompt: 5 }, "prompt"],
  ["POST", "/tokenize/increment", { messages: [], appended: [user("a")] }, "closed"],
  ["POST", "/tokenize/increment", { messages: [], appended: [], closed: true }, "appended"],
  ["POST", "/tokenize/decode", { tokens: "1" }, "tokens"],
  ["POST", "/tokenize/parse", {}, "text"],
  ["POST", "/tokenize/parse", { text: "a", tokens: [1] }, "text"],
  ["POST", "/tokenize/parse", { text: "abc", chunks: [2, 1] }, "chunks"],
  ["POST", "/tokenize/parse", { text: "abc", tool_call_parser: "none_such" }, "tool_call_parser"],
  ["POST", "/tokenize/parse", { text: "abc", reasoning_parser: "none_such" }, "reasoning_parser"],
  ["POST", "/parse_function_call", { text: "a", tools: [{}] }, "tools.0.name"],
];

for (const [method, path, body, field] of WRONG) {
  Deno.test(`${method} ${path} refuses ${JSON.stringify(body ?? "")?.slice(0, 60)} and names ${field}`, async () => {
    const { id } = await harness().createTask();
    const answer = await harness().admin(method, path.replace("ID", id), body);
    assertRefused(answer, { status: 400, code: "invalid_request", field });
  });
}

const OUT_OF_RANGE: readonly Case[] = [
  ["POST", "/generate", { input_ids: [1, 2, 999_999_999] }, "input_ids.2"],
  ["POST", "/generate", { input_ids: [-1] }, "input_ids.0"],
  [
    "POST",
    "/generate",
    { input_ids: [1], sampling_params: { stop_token_ids: [5, 999_999_999] } },
    "sampling_params.stop_token_ids.1",
  ],
  [
    "POST",
    "/generate",
    { input_ids: [1], sampling_params: { logit_bias: { 5: 1, 999999999: 1 } } },
    "sampling_params.logit_bias.999999999",
  ],
  ["POST", "/detokenize", { tokens: [1, 999_999_999] }, "tokens.1"],
  ["POST", "/tokenize/decode", { tokens: [[1], [2, -3]] }, "tokens.1.1"],
  ["POST", "/tokenize/parse", { tokens: [999_999_999] }, "tokens.0"],
  ["POST", "/tasks", { sampling: { fixed: { stop_token_ids: [999_999_999] } } }, "sampling.fixed.stop_token_ids.0"],
  ["POST", "/tasks", { sampling: { fixed: { logit_bias: { 999999999: 1 } } } }, "sampling.fixed.logit_bias.999999999"],
];

for (const [method, path, body, field] of OUT_OF_RANGE) {
  Deno.test(`${method} ${path} refuses an id outside the vocabulary at ${field} before any engine sees it`, async () => {
    const calls = countEngineCalls(harness());
    const answer = await harness().admin(method, path, body);
    assertRefused(answer, { status: 400, code: "token_out_of_range", field });
    assert.equal(calls(), 0);
  });
}

Deno.test("the first id past the vocabulary is refused and the last in it is not", async () => {
  const { vocabSize } = harness().development.tokenizer;
  const past = await harness().admin("POST", "/generate", {
    input_ids: [vocabSize],
    sampling_params: { max_new_tokens: 1 },
  });
  assertRefused(past, { status: 400, code: "token_out_of_range", field: "input_ids.0" });
  const last = await harness().admin("POST", "/generate", {
    input_ids: [vocabSize - 1],
    sampling_params: { max_new_tokens: 1 },
  });
  assert.equal(last.status, 200, JSON.stringify(last.body));
});

const UNSUPPORTED: readonly Case[] = [
  ["POST", "/tasks", { capture_extras: ["routed_experts"] }, "capture_extras"],
  [
    "POST",
    "/generate",
    { messages: [{ role: "user", content: [{ type: "input_audio" }] }] },
    "messages.0.content.0.type",
  ],
];

for (const [method, path, body, field] of UNSUPPORTED) {
  Deno.test(`${method} ${path} refuses what it does not support at ${field}`, async () => {
    assertRefused(await harness().admin(method, path, body), { status: 400, code: "unsupported", field });
  });
}

Deno.test("own endpoints refuse a body that is not JSON", async () => {
  for (const path of ["/tasks", "/generate", "/tokenize", "/tokenize/parse", "/detokenize"]) {
    for (const body of ["{", '{"a":', "tasks"]) {
      assertRefused(await harness().admin("POST", path, body), { status: 400, code: "invalid_request", field: null });
    }
  }
});

Deno.test("own endpoints refuse JSON nested beyond reason, as the caller's mistake", async () => {
  const nested = "[".repeat(100_000) + "]".repeat(100_000);
  for (
    const [path, body] of [
      ["/tasks", `{"metadata": {"a": ${nested}}}`],
      ["/generate", `{"messages": [{"role": "user", "content": "a", "x": ${nested}}]}`],
      ["/tokenize", `{"messages": [{"role": "user", "content": "a"}], "tools": [{"name": "f", "x": ${nested}}]}`],
    ] as const
  ) {
    assertRefused(await harness().admin("POST", path, body), { status: 400, code: "invalid_request" });
  }
});

Deno.test("POST /tasks takes metadata nested as deeply as any real one, and gives it back", async () => {
  let metadata: unknown = "leaf";
  for (let depth = 0; depth < 200; depth++) metadata = { inner: metadata };
  const { id } = await harness().createTask({ metadata: { deep: metadata } });
  assert.deepEqual((await harness().task(id)).metadata, { deep: metadata });
});

Deno.test("POST /tasks takes an empty body for an empty object", async () => {
  const response = await fetch(`${harness().url}/tasks`, { method: "POST" });
  assert.equal(response.status, 201);
  assert.match((await response.json()).task_id, /^task_/);
});

Deno.test("paths that are not there are 404 in Verbatim's shape", async () => {
  for (
    const [method, path] of [
      ["GET", "/nothing"],
      ["POST", "/v2/chat/completions"],
      ["GET", "/v1/chat/completions"],
      ["PATCH", "/tasks/x"],
      ["POST", "/tokenize/encode"],
      ["GET", "/k/key/v1/nothing"],
    ] as const
  ) {
    const answer = await harness().admin(method, path, method === "GET" ? undefined : {});
    assertRefused(answer, { status: 404, code: "not_found" });
  }
});

Deno.test("tasks that are not there are 404 on every endpoint", async () => {
  for (
    const [method, path, body] of [
      ["GET", "/tasks/none", undefined],
      ["GET", "/tasks/none/turns", undefined],
      ["GET", "/tasks/none/explain", undefined],
      ["GET", "/tasks/none/result", undefined],
      ["POST", "/tasks/none/finish", {}],
      ["PUT", "/tasks/none/reward", { reward: 1 }],
      ["DELETE", "/tasks/none", undefined],
      ["GET", `/tasks/${encodeURIComponent("a/b?c")}`, undefined],
    ] as const
  ) {
    assertRefused(await harness().admin(method, path, body), { status: 404, code: "task_not_found" });
  }
});
