/** Which key opens what: task keys, the admin key, keys of tasks that are closed or gone. */

import assert from "node:assert/strict";
import { type Answered, type Harness, movableClock, sharedHarness, user } from "./harness.ts";

const ADMIN = "admin-key-of-this-test";
const clock = movableClock();

const harness = sharedHarness({
  environment: { VERBATIM_ADMIN_KEY: ADMIN },
  parts: { clock },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
});

const body = { messages: [user("Hello")] };

interface Task {
  readonly id: string;
  readonly key: string;
}

async function createTask(fields: Record<string, unknown> = {}): Promise<Task> {
  const answer = await asAdmin(harness(), "POST", "/tasks", fields);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return { id: answer.body.task_id, key: answer.body.api_key };
}

async function asAdmin(gateway: Harness, method: string, path: string, sent?: unknown): Promise<Answered> {
  return await gateway.admin(method, path, sent, { authorization: `Bearer ${ADMIN}` });
}

function assertOpenAiError(answer: Answered, expected: { status: number; code: string; type: string }): void {
  assert.equal(answer.status, expected.status, JSON.stringify(answer.body));
  const { code, type, message } = answer.body.error;
  assert.deepEqual({ code, type }, { code: expected.code, type: expected.type });
  assert.equal(typeof message, "string");
  assert.equal(answer.headers.get("x-should-retry"), "false");
  assert.equal(answer.headers.get("retry-after"), null);
}

const UNAUTHORIZED = { status: 401, code: "unauthorized", type: "authentication_error" };

Deno.test("a task key is taken as bearer, as x-api-key, and in the path", async () => {
  const { id, key } = await createTask();
  const path = "/v1/chat/completions";
  const answers = [
    await harness().chat(key, body),
    await harness().admin("POST", path, body, { authorization: `bearer ${key}` }),
    await harness().admin("POST", path, body, { "x-api-key": key }),
    await harness().admin("POST", `/k/${key}${path}`, body),
    await harness().admin("POST", `/proxy-turn${path}`, body, { "x-api-key": key }),
    await harness().admin("POST", `/proxy-turn/k/${key}${path}`, body),
  ];
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200, 200, 200]);
  assert.deepEqual(answers.map(({ headers }) => headers.get("x-verbatim-turn")), ["0", "1", "2", "3", "4", "5"]);
  assert.equal((await asAdmin(harness(), "GET", `/tasks/${id}`)).body.turns, 6);
});

Deno.test("the key in the path counts where another is sent beside it", async () => {
  const mine = await createTask();
  const other = await createTask();
  await harness().admin("POST", `/k/${mine.key}/v1/chat/completions`, body, { authorization: `Bearer ${other.key}` });
  assert.equal((await asAdmin(harness(), "GET", `/tasks/${mine.id}`)).body.turns, 1);
  assert.equal((await asAdmin(harness(), "GET", `/tasks/${other.id}`)).body.turns, 0);
});

Deno.test("no key, an unknown key and the admin key open no agent endpoint", async () => {
  const path = "/v1/chat/completions";
  for (
    const answer of [
      await harness().admin("POST", path, body),
      await harness().admin("POST", path, body, { authorization: "Basic abc" }),
      await harness().admin("POST", path, body, { authorization: "Bearer " }),
      await harness().chat("vk_nobody", body),
      await harness().chat(ADMIN, body),
      await harness().admin("POST", `/k/vk_nobody${path}`, body),
      await harness().admin("GET", "/v1/models"),
      await harness().admin("GET", "/v1/models/some", undefined, { "x-api-key": "vk_nobody" }),
    ]
  ) {
    assertOpenAiError(answer, UNAUTHORIZED);
  }
});

Deno.test("an unknown key is refused before the body is looked at", async () => {
  assertOpenAiError(await harness().admin("POST", "/v1/chat/completions", "{", { "x-api-key": "no" }), UNAUTHORIZED);
});

Deno.test("a key records in its own task and in no other", async () => {
  const [mine, other] = [await createTask(), await createTask()];
  await harness().chat(mine.key, body);
  // The other task does not know the history that this one has: its request is a root, not an append.
  const next = { messages: [user("Hello"), { role: "assistant", content: "Hello to you." }, user("More")] };
  await harness().chat(other.key, { ...next, max_tokens: 2 });
  const { turns } = (await asAdmin(harness(), "GET", `/tasks/${other.id}/turns`)).body;
  assert.deepEqual(turns.map((turn: { relation: string; parent: unknown }) => [turn.relation, turn.parent]), [[
    "root",
    null,
  ]]);
  assert.equal((await asAdmin(harness(), "GET", `/tasks/${mine.id}`)).body.turns, 1);
});

Deno.test("the key of a finished task is refused for good: 503 task_closed, not to be retried", async () => {
  const { id, key } = await createTask();
  await harness().chat(key, body);
  await asAdmin(harness(), "POST", `/tasks/${id}/finish`, { reward: 1 });
  for (const answer of [await harness().chat(key, body), await harness().chat(key, { ...body, stream: true })]) {
    assertOpenAiError(answer, { status: 503, code: "task_closed", type: "server_error" });
  }
  assert.equal((await asAdmin(harness(), "GET", `/tasks/${id}`)).body.turns, 1);
});

Deno.test("the key of a dropped task is unknown", async () => {
  const { id, key } = await createTask();
  await harness().chat(key, body);
  await asAdmin(harness(), "DELETE", `/tasks/${id}`);
  assertOpenAiError(await harness().chat(key, body), UNAUTHORIZED);
});

Deno.test("the key of an expired task is unknown", async () => {
  const { id, key } = await createTask({ ttl_s: 60 });
  await harness().chat(key, body);
  clock.forward(60_000);
  assertOpenAiError(await harness().chat(key, body), UNAUTHORIZED);
  assert.equal((await asAdmin(harness(), "GET", `/tasks/${id}`)).body.status, "expired");
});

const OWN: readonly (readonly [method: string, path: string, sent: unknown])[] = [
  ["POST", "/tasks", {}],
  ["GET", "/tasks", undefined],
  ["GET", "/tasks/x", undefined],
  ["DELETE", "/tasks/x", undefined],
  ["GET", "/tasks/x/turns", undefined],
  ["GET", "/tasks/x/explain", undefined],
  ["POST", "/tasks/x/finish", {}],
  ["PUT", "/tasks/x/reward", { reward: 1 }],
  ["GET", "/tasks/x/result", undefined],
  ["POST", "/generate", { input_ids: [1] }],
  ["POST", "/tokenize", { prompt: "a" }],
  ["POST", "/tokenize/increment", {}],
  ["POST", "/tokenize/decode", { tokens: [1] }],
  ["POST", "/tokenize/parse", { text: "a" }],
  ["POST", "/detokenize", { tokens: [1] }],
  ["POST", "/parse_function_call", { text: "a", tools: [] }],
  ["POST", "/separate_reasoning", { text: "a" }],
];

for (const [method, path, sent] of OWN) {
  Deno.test(`${method} ${path} wants the admin key: none or a wrong one is 401, a task key 403`, async () => {
    const { key } = await createTask();
    const attempts = [
      [{}, 401, "unauthorized"],
      [{ authorization: "Bearer wrong" }, 401, "unauthorized"],
      [{ authorization: `Bearer ${ADMIN}x` }, 401, "unauthorized"],
      [{ authorization: `Bearer ${key}` }, 403, "forbidden"],
      [{ "x-api-key": key }, 403, "forbidden"],
    ] as const;
    for (const [headers, status, code] of attempts) {
      const answer = await harness().admin(method, path, sent, headers);
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.equal(answer.body.error.code, code);
      assert.equal(answer.body.error.retryable, false);
    }
    assert.notEqual((await asAdmin(harness(), method, path, sent)).status, 401);
  });
}

Deno.test("a finished task's key is still a task key on own endpoints", async () => {
  const { id, key } = await createTask();
  await asAdmin(harness(), "POST", `/tasks/${id}/finish`, {});
  assert.equal((await harness().admin("GET", `/tasks/${id}`, undefined, { "x-api-key": key })).status, 403);
});

Deno.test("GET /v1/models lists the model to a task's key", async () => {
  const { key } = await createTask();
  const { status, body: listed } = await harness().admin("GET", "/v1/models", undefined, { "x-api-key": key });
  assert.equal(status, 200);
  assert.equal(listed.object, "list");
  const [model] = listed.data;
  assert.equal(model.object, "model");
  const one = await harness().admin("GET", `/v1/models/${model.id}`, undefined, { "x-api-key": key });
  assert.deepEqual(one.body, model);
  const none = await harness().admin("GET", "/v1/models/other", undefined, { "x-api-key": key });
  assertOpenAiError(none, { status: 404, code: "model_not_found", type: "not_found_error" });
});
