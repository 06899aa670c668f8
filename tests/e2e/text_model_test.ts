/** Text-level models for evaluation: named in /generate and by agents whose calls are not recorded, refused wherever tokens are needed. */

import assert from "node:assert/strict";
import {
  chunk,
  completion,
  type MockAnswer,
  type MockOpenAI,
  refusal,
  serveMockOpenAI,
  streamed,
  USAGE_CHUNK,
} from "../fixtures/mock_openai.ts";
import { EventStream } from "./event_stream.ts";
import { type Answered, type Body, type Harness, startHarness, user } from "./harness.ts";
import { until } from "./until.ts";

const KEY = "sk-e2e-secret-0123456789";
const hello = { model: "judge", messages: [user("Hello")] };
const CALL = { id: "call_1", type: "function", function: { name: "look", arguments: '{"at":1}' } };
const LOOK = { name: "look", parameters: { type: "object", properties: { at: { type: "number" } } } };

let mock: MockOpenAI;
let harness: Harness;

Deno.test.beforeAll(async () => {
  mock = serveMockOpenAI(() => completion({ content: "Hi" }));
  Deno.env.set("E2E_JUDGE_KEY", KEY);
  const shared = { base_url: `${mock.url}/v1`, base_delay_s: 0, retries: 1 };
  harness = await startHarness({
    environment: {
      PASSTHROUGH_KEYS: "EMPTY",
      OPENAI_BACKENDS: JSON.stringify([
        { ...shared, model: "judge", upstream_model: "gpt-4o-2024-11-20", api_key_env: "E2E_JUDGE_KEY" },
        { ...shared, model: "local", price: { input: 1, output: 2 } },
        { ...shared, model: "unpriced" },
      ]),
    },
  });
});

Deno.test.afterAll(async () => {
  await harness[Symbol.asyncDispose]();
  await mock[Symbol.asyncDispose]();
  Deno.env.delete("E2E_JUDGE_KEY");
});

function answering(answer: MockAnswer): void {
  mock.requests.length = 0;
  mock.answer = answer;
}

/** A call of another dialect than chat, with a pass-through key. */
function post(path: string, body: unknown): Promise<Answered> {
  return harness.admin("POST", path, body, { authorization: "Bearer EMPTY" });
}

async function framesOf(path: string, body: unknown): Promise<Body[]> {
  const stream = await EventStream.open(`${harness.url}${path}`, {
    headers: { authorization: "Bearer EMPTY" },
    body: JSON.stringify(body),
  });
  return await stream.rest();
}

async function counter(name: string, labels: string): Promise<number> {
  const text = await (await fetch(`${harness.url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name}{${labels}}`));
  return line === undefined ? 0 : Number(line.split(" ").at(-1));
}

Deno.test("text-level models are listed beside our own, and said to be for evaluation", async () => {
  const { body } = await harness.admin("GET", "/v1/models", undefined, { authorization: "Bearer EMPTY" });
  const own = harness.development.services.models.default.name;
  assert.deepEqual(body.data.map(({ id }: Body) => id), [own, "judge", "local", "unpriced"]);
  assert.equal(body.data[1].evaluation_only, true);
  const one = await harness.admin("GET", "/v1/models/judge", undefined, { authorization: "Bearer EMPTY" });
  assert.equal(one.body.id, "judge");
  const ready = await harness.admin("GET", "/readyz");
  assert.deepEqual([ready.status, ready.body.text_models], [
    200,
    ["judge", "local", "unpriced"].map((name) => ({ name })),
  ]);
});

Deno.test("/generate answers by a text-level model, with usage and cost and without tokens", async () => {
  answering(() => completion({ content: "Hi", tool_calls: [CALL] }));
  const { status, body } = await harness.admin("POST", "/generate", {
    model: "judge",
    messages: [user("Hello")],
    tools: [{ type: "function", function: LOOK }],
    sampling_params: { temperature: 0, max_new_tokens: 5 },
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body, {
    text: "Hi",
    token_ids: null,
    logprobs: null,
    tool_calls: [CALL],
    reasoning: null,
    finish_reason: "tool_calls",
    usage: { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 40, reasoning_tokens: 5 },
    weight_version: null,
    // gpt-4o: 60 at 2.50, 40 at 1.25, 20 at 10 dollars a million.
    cost_usd: 0.0004,
  });
  const [asked] = mock.requests;
  assert.equal(asked?.headers.get("authorization"), `Bearer ${KEY}`);
  assert.deepEqual([asked?.body.model, asked?.body.max_completion_tokens], ["gpt-4o-2024-11-20", 5]);
});

Deno.test("/generate streams a text-level model's text", async () => {
  answering(() => streamed([chunk({ content: "Hi " }), chunk({ content: "there" }), chunk({}, "stop"), USAGE_CHUNK]));
  const frames = await framesOf("/generate", { ...hello, stream: true });
  const deltas = frames.slice(0, -1);
  assert.equal(deltas.map(({ text }) => text).join(""), "Hi there");
  assert.ok(deltas.every(({ token_ids, logprobs }) => token_ids === null && logprobs === null));
  const { done, text, finish_reason } = frames.at(-1);
  assert.deepEqual([done, text, finish_reason], [true, "Hi there", "stop"]);
});

Deno.test("a text-level model is refused wherever there must be tokens", async () => {
  answering(() => completion({ content: "Hi" }));
  const refused: [answer: Promise<Answered>, field: string][] = [
    [harness.admin("POST", "/generate", { model: "judge", input_ids: [1] }), "input_ids"],
    [
      harness.admin("POST", "/generate", { ...hello, sampling_params: { top_k: 3 } }),
      "sampling_params.top_k",
    ],
    [harness.admin("POST", "/generate", { ...hello, chat_template_kwargs: { x: 1 } }), "chat_template_kwargs.x"],
    [harness.admin("POST", "/tasks", { model: "judge" }), "model"],
    [harness.admin("POST", "/tasks", { model: "judge", capture: false, max_context_tokens: 9 }), "max_context_tokens"],
    [
      harness.admin("POST", "/tasks", { model: "judge", capture: false, sampling: { fixed: { top_k: 3 } } }),
      "sampling.fixed.top_k",
    ],
    [harness.admin("POST", "/tokenize", { model: "judge", prompt: "x" }), "model"],
  ];
  for (const [answer, field] of refused) {
    const { status, body } = await answer;
    assert.deepEqual([status, body.error?.code, body.error?.details?.field], [400, "unsupported", field]);
  }
  const { body } = await harness.admin("POST", "/tasks", { model: "judge" });
  assert.match(body.error.message, /evaluation only/);
  for (const [field, value] of [["logprobs", true], ["return_token_ids", true]] as const) {
    const answer = await harness.chat("EMPTY", { ...hello, [field]: value });
    assert.deepEqual([answer.status, answer.body.error.param], [400, field]);
  }
  const count = await post("/v1/messages/count_tokens", { ...hello, max_tokens: 1 });
  assert.equal(count.status, 400);
  assert.deepEqual(mock.requests, []);
});

Deno.test("an agent of a capture task that names a text-level model is refused, and nothing is recorded", async () => {
  answering(() => completion({ content: "Hi" }));
  const { id, key } = await harness.createTask();
  for (const stream of [false, true]) {
    const { status, body } = await harness.chat(key, { ...hello, stream });
    assert.deepEqual([status, body.error.code], [400, "unsupported"]);
    assert.match(body.error.message, /evaluation only/);
  }
  const messages = await harness.admin("POST", "/v1/messages", { ...hello, max_tokens: 9 }, { "x-api-key": key });
  assert.equal(messages.status, 400);
  assert.deepEqual([mock.requests, (await harness.task(id)).turns], [[], 0]);
});

Deno.test("chat completions relay a text-level model, whole and streamed", async () => {
  answering(() => completion({ content: null, reasoning_content: "Hm", tool_calls: [CALL] }));
  const request = {
    ...hello,
    tools: [{ type: "function", function: LOOK }],
    tool_choice: "required",
    parallel_tool_calls: false,
    reasoning_effort: "low",
    max_tokens: 7,
  };
  const { status, headers, body } = await harness.chat("EMPTY", request);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([headers.get("x-verbatim-turn"), body.model], ["none", "judge"]);
  const [choice] = body.choices;
  assert.deepEqual([choice.finish_reason, choice.message.tool_calls, choice.message.reasoning_content], [
    "tool_calls",
    [CALL],
    "Hm",
  ]);
  assert.deepEqual(body.usage, {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    prompt_tokens_details: { cached_tokens: 40 },
    completion_tokens_details: { reasoning_tokens: 5 },
  });
  const { tool_choice, parallel_tool_calls, reasoning_effort, max_completion_tokens } = mock.requests[0]!.body;
  assert.deepEqual([tool_choice, parallel_tool_calls, reasoning_effort, max_completion_tokens], [
    "required",
    false,
    "low",
    7,
  ]);

  answering(() =>
    streamed([
      chunk({ content: "Let " }),
      chunk({ content: "me" }),
      chunk({ tool_calls: [{ index: 0, ...CALL }] }),
      chunk({}, "tool_calls"),
      USAGE_CHUNK,
    ])
  );
  const stream = await harness.stream("EMPTY", { ...request, stream_options: { include_usage: true } });
  const frames = await stream.rest();
  const deltas = frames.flatMap(({ choices }) => choices.map(({ delta }: Body) => delta));
  assert.equal(deltas.map(({ content }) => content ?? "").join(""), "Let me");
  assert.deepEqual(deltas.flatMap(({ tool_calls }) => tool_calls ?? []), [{ index: 0, ...CALL }]);
  assert.deepEqual([frames.at(-1).usage.completion_tokens, frames.at(-1).verbatim, stream.end], [
    20,
    { turn: null },
    "done",
  ]);
});

Deno.test("a JSON schema reaches a text-level model in its own words", async () => {
  answering(() => completion({ content: "{}" }));
  const schema = { type: "object", properties: {}, additionalProperties: false };
  await harness.chat("EMPTY", {
    ...hello,
    response_format: { type: "json_schema", json_schema: { name: "x", schema } },
  });
  await harness.chat("EMPTY", { ...hello, response_format: { type: "json_object" } });
  assert.deepEqual(mock.requests.map(({ body }) => body.response_format), [
    { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    { type: "json_object" },
  ]);
});

Deno.test("the Responses API relays a text-level model, whole and streamed", async () => {
  const request = { model: "judge", input: "Hello", instructions: "Be brief" };
  answering(() => completion({ content: "Hi", tool_calls: [CALL] }));
  const { status, body } = await post("/v1/responses", request);
  assert.equal(status, 200, JSON.stringify(body));
  const [message, call] = body.output;
  assert.deepEqual([message.content[0].text, call.name, call.arguments], ["Hi", "look", '{"at":1}']);
  assert.deepEqual([body.usage.input_tokens, body.usage.output_tokens], [100, 20]);
  assert.deepEqual(body.usage.input_tokens_details, { cached_tokens: 40 });
  assert.deepEqual(mock.requests[0]!.body.messages, [
    { role: "system", content: "Be brief" },
    { role: "user", content: "Hello" },
  ]);

  answering(() => streamed([chunk({ content: "Hi " }), chunk({ content: "there" }), chunk({}, "stop"), USAGE_CHUNK]));
  const frames = await framesOf("/v1/responses", { ...request, stream: true });
  const texts = frames.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta);
  assert.deepEqual(texts, ["Hi ", "there"]);
  assert.equal(frames.at(-1).type, "response.completed");
  assert.equal(frames.at(-1).response.usage.input_tokens, 100);
});

Deno.test("the Messages API relays a text-level model, whole and streamed", async () => {
  const request = { ...hello, max_tokens: 50, system: "Be brief" };
  answering(() => completion({ content: "Hi", tool_calls: [CALL] }));
  const { status, body } = await post("/v1/messages", request);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body.content, [
    { type: "text", text: "Hi" },
    { type: "tool_use", id: "call_1", name: "look", input: { at: 1 } },
  ]);
  assert.equal(body.stop_reason, "tool_use");
  assert.deepEqual(body.usage, {
    input_tokens: 60,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 40,
    output_tokens: 20,
  });

  answering(() => streamed([chunk({ content: "Hi" }), chunk({}, "length"), USAGE_CHUNK]));
  const frames = await framesOf("/v1/messages", { ...request, stream: true });
  const texts = frames.filter(({ type }) => type === "content_block_delta").map(({ delta }) => delta.text);
  assert.deepEqual(texts, ["Hi"]);
  const last = frames.find(({ type }) => type === "message_delta");
  assert.deepEqual([last.delta.stop_reason, last.usage.input_tokens, last.usage.output_tokens], ["max_tokens", 60, 20]);

  const broken = { ...CALL, function: { name: "look", arguments: "{at: 1" } };
  answering(() => completion({ content: null, tool_calls: [broken] }));
  const unspeakable = await post("/v1/messages", request);
  assert.deepEqual([unspeakable.status, unspeakable.body.type], [502, "error"]);
  const chat = await harness.chat("EMPTY", hello);
  assert.deepEqual(chat.body.choices[0].message.tool_calls, [broken]);
});

Deno.test("a task without capture may have a text-level model, whatever name its agent gives", async () => {
  answering(() => completion({ content: "Hi" }));
  const { id, key } = await harness.createTask({
    model: "local",
    capture: false,
    sampling: { fixed: { temperature: 0.5 } },
  });
  for (const model of [undefined, "gpt-oss", "local"]) {
    const { status, body } = await harness.chat(key, {
      messages: [user("Hello")],
      temperature: 1,
      ...(model ? { model } : {}),
    });
    assert.deepEqual([status, body.choices?.[0].message.content, body.model], [200, "Hi", "local"]);
  }
  assert.deepEqual(mock.requests.map(({ body }) => [body.model, body.temperature]), Array(3).fill(["local", 0.5]));
  const own = harness.development.services.models.default.name;
  const ours = await harness.chat(key, { model: own, messages: [user("Hello")], max_tokens: 3 });
  assert.deepEqual([ours.status, ours.body.model, mock.requests.length], [200, own, 3]);
  for (const format of ["region", "rows", "slime"]) {
    const { status, body } = await harness.admin("GET", `/tasks/${id}/result?format=${format}`);
    assert.deepEqual([status, body.reason], [200, "not captured"]);
  }
  const { body } = await harness.admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual([body.result, body.reason], [null, "not captured"]);
});

Deno.test("a failing text-level backend is told in the dialect, with its wait and without its key", async () => {
  answering(() => refusal(429, { headers: { "retry-after": "0" } }));
  const busy = await harness.chat("EMPTY", hello);
  assert.deepEqual([busy.status, busy.body.error.code, busy.headers.get("x-should-retry")], [429, "busy", "true"]);
  assert.ok(busy.headers.has("retry-after"));
  assert.equal(mock.requests.length, 2);

  answering(() => refusal(401, { message: `Incorrect key ${KEY}` }));
  const refused = await harness.chat("EMPTY", hello);
  assert.deepEqual([refused.status, refused.body.error.code, mock.requests.length], [502, "engine_failed", 1]);
  assert.match(refused.body.error.message, /E2E_JUDGE_KEY/);
  assert.ok(!JSON.stringify(refused.body).includes("sk-e2e"));
  const generated = await harness.admin("POST", "/generate", hello);
  assert.ok(!JSON.stringify(generated.body).includes("sk-e2e"));
  assert.deepEqual([generated.status, generated.body.error.retryable], [502, false]);

  answering(() =>
    completion({ content: "I" }, { choices: [{ message: { content: "I" }, finish_reason: "content_filter" }] })
  );
  const filtered = await harness.chat("EMPTY", hello);
  assert.deepEqual([filtered.status, filtered.headers.get("x-should-retry")], [502, "false"]);
  assert.match(filtered.body.error.message, /content_filter/);
  const whole = await harness.admin("POST", "/generate", hello);
  assert.equal(whole.body.finish_reason, "error:content_filter");

  const heard = Promise.withResolvers<void>();
  answering(() => streamed([chunk({ content: "Hi" })], "closed", heard.promise));
  const stream = await harness.stream("EMPTY", hello);
  let text = "";
  while (text === "") text += (await stream.next()).choices[0].delta.content;
  heard.resolve();
  const rest = await stream.rest();
  assert.equal(rest.at(-1).error.code, "engine_failed");
});

Deno.test("a client that hangs up ends the request at the backend; so does a finish of the task", async () => {
  const gone: Promise<void>[] = [];
  answering(() => {
    const cancelled = Promise.withResolvers<void>();
    gone.push(cancelled.promise);
    const first = new TextEncoder().encode(`data: ${JSON.stringify(chunk({ content: "Hi" }))}\n\n`);
    return new Response(
      new ReadableStream({ start: (controller) => controller.enqueue(first), cancel: () => cancelled.resolve() }),
      { headers: { "content-type": "text/event-stream" } },
    );
  });
  const stream = await harness.stream("EMPTY", hello);
  let text = "";
  while (text === "") text += (await stream.next()).choices[0].delta.content;
  stream.hangUp();
  await gone[0];

  const { id, key } = await harness.createTask({ model: "judge", capture: false });
  const running = harness.stream(key, { messages: [user("Hello")] });
  await until("the call is at the backend", () => gone.length === 2);
  const { status } = await harness.admin("POST", `/tasks/${id}/finish`, { wait_s: 0 });
  assert.equal(status, 200);
  await gone[1];
  await (await running).rest();
});

Deno.test("metrics count text-level tokens and dollars by model, and calls whose price is not known", async () => {
  answering(() => completion({ content: "Hi" }));
  const before = {
    cost: await counter("verbatim_text_cost_usd_total", 'model="local"'),
    prompt: await counter("verbatim_text_tokens_total", 'model="local",kind="prompt"'),
  };
  await harness.admin("POST", "/generate", { ...hello, model: "local" });
  await harness.chat("EMPTY", { ...hello, model: "local" });
  const cost = await counter("verbatim_text_cost_usd_total", 'model="local"') - before.cost;
  assert.ok(Math.abs(cost - 2 * (100 * 1 + 20 * 2) / 1e6) < 1e-12, String(cost));
  assert.equal(await counter("verbatim_text_tokens_total", 'model="local",kind="prompt"') - before.prompt, 200);
  await harness.chat("EMPTY", { ...hello, model: "unpriced" });
  assert.equal(await counter("verbatim_text_unpriced_calls_total", 'model="unpriced"'), 1);
  assert.equal(await counter("verbatim_text_cost_usd_total", 'model="unpriced"'), 0);
});

Deno.test("a start with text-level backends that can't be is stopped, and the variable named", async () => {
  const base = { base_url: "http://127.0.0.1:1", model: "judge" };
  const own = harness.development.services.models.default.name;
  const starts: [value: string, words: RegExp][] = [
    ["[{", /OPENAI_BACKENDS: must be a JSON list/],
    ["/no/such/file", /OPENAI_BACKENDS is no JSON list, nor a file/],
    [JSON.stringify([{ ...base, base_url: "ftp://x" }]), /OPENAI_BACKENDS\.0\.base_url/],
    [JSON.stringify([{ ...base, requests_per_minute: 0 }]), /OPENAI_BACKENDS\.0\.requests_per_minute/],
    [JSON.stringify([{ ...base, api_key: "sk-1" }]), /OPENAI_BACKENDS\.0.*api_key/],
    [JSON.stringify([base, base]), /OPENAI_BACKENDS: two backends have one model name/],
    [JSON.stringify([{ ...base, api_key_env: "NO_SUCH_KEY" }]), /OPENAI_BACKENDS names the variable NO_SUCH_KEY/],
    [JSON.stringify([{ ...base, model: own }]), /one name/],
  ];
  for (const [OPENAI_BACKENDS, words] of starts) {
    await assert.rejects(
      startHarness({ environment: { OPENAI_BACKENDS } }),
      (error: { code: string; message: string }) => {
        assert.deepEqual([error.code, words.test(error.message)], ["not_ready", true], error.message);
        return true;
      },
    );
  }
});

Deno.test("text-level backends may be listed in a file", async () => {
  const path = await Deno.makeTempFile({ suffix: ".json" });
  try {
    await Deno.writeTextFile(path, JSON.stringify([{ model: "judge", base_url: mock.url }]));
    await using started = await startHarness({ environment: { OPENAI_BACKENDS: path } });
    assert.deepEqual(started.development.services.models.listText().map(({ name }) => name), ["judge"]);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("a name that means nothing is refused beside text-level models, where nothing is captured", async () => {
  const slip = { ...hello, model: "jugde" };
  const refused = await harness.chat("EMPTY", slip);
  assert.deepEqual([refused.status, refused.body.error.code], [404, "model_not_found"]);
  assert.equal((await harness.admin("POST", "/generate", slip)).status, 404);
  assert.equal((await harness.chat("EMPTY", { ...hello, model: "default", max_tokens: 2 })).status, 200);
  const { key } = await harness.createTask();
  assert.equal(
    (await harness.chat(key, { ...slip, max_tokens: 2 })).status,
    200,
    "a scaffold's own name for the policy",
  );
});
