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
} from "../../../tests/fixtures/mock_openai.ts";
import type { VerbatimError } from "../../core/errors.ts";
import type { BackendDelta, BackendRequest } from "../../ports/model_backend.ts";
import type { Clock } from "../../ports/clock.ts";
import { OpenAIBackend, type OpenAIBackendOptions } from "./openai_backend.ts";
import { createRandomIds } from "../random_ids.ts";

const KEY = "sk-secret-0123456789";
const IDLE_MS = 7_777;
const never = new AbortController().signal;

/** A clock whose waits pass at once and are noted; the watch over silence waits until `silence` is called. */
interface WaitingClock extends Clock {
  readonly waits: number[];
  silence(): void;
}

function waitingClock(): WaitingClock {
  let nowMs = Date.UTC(2026, 0, 1);
  const waits: number[] = [];
  let silent = Promise.withResolvers<void>();
  return {
    waits,
    now: () => nowMs,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      if (ms === IDLE_MS) {
        await Promise.race([silent.promise, new Promise((_, reject) => signal?.addEventListener("abort", reject))]);
      } else {
        waits.push(ms);
      }
      nowMs += ms;
    },
    silence() {
      silent.resolve();
      silent = Promise.withResolvers();
    },
  };
}

interface World extends AsyncDisposable {
  readonly mock: MockOpenAI;
  readonly clock: WaitingClock;
  readonly backend: OpenAIBackend;
}

function worldOf(answer: MockAnswer, options: Partial<OpenAIBackendOptions> = {}): World {
  const mock = serveMockOpenAI(answer);
  const clock = waitingClock();
  const backend = new OpenAIBackend({
    model: "judge",
    upstreamModel: "gpt-4o",
    baseUrl: `${mock.url}/v1`,
    apiKey: KEY,
    keyVariable: "JUDGE_KEY",
    limits: { requestsPerMinute: Infinity, tokensPerMinute: Infinity, maxConcurrency: 4 },
    retries: 3,
    baseDelayMs: 1000,
    idleTimeoutMs: IDLE_MS,
    tokenLimitField: "max_completion_tokens",
    price: { input: 2, cachedInput: 1, output: 10 },
    clock,
    ids: createRandomIds(clock),
    random: () => 1,
    ...options,
  });
  return { mock, clock, backend, [Symbol.asyncDispose]: () => mock[Symbol.asyncDispose]() };
}

const HELLO: BackendRequest = {
  messages: [{ role: "user", content: "Hello", source: 0 }],
  sampling_params: {},
  signal: never,
};

const CALL = { id: "call_1", type: "function", function: { name: "look", arguments: '{"at": 1}' } };

Deno.test("OpenAIBackend asks in the API's words and answers as any model does, without tokens", async () => {
  await using world = worldOf(() =>
    completion({ content: null, reasoning_content: "Hm.", tool_calls: [CALL] }, { model: "gpt-4o" })
  );
  const parameters = { type: "object", properties: { at: { type: "number" } } };
  const result = await world.backend.generate({
    ...HELLO,
    messages: [
      { role: "system", content: "Be brief", source: 0 },
      {
        role: "user",
        content: [{ type: "text", text: "See" }, { type: "image", sha256: "0", url: "data:x" }],
        source: 1,
      },
      {
        role: "assistant",
        content: "",
        reasoning: "secret",
        toolCalls: [{ id: "c0", name: "look", arguments: "{}" }],
        form: "",
        source: 2,
      },
      { role: "tool", toolCallId: "c0", content: [{ type: "text", text: "seen" }], source: 3 },
    ],
    tools: [{ name: "look", description: "Looks", parameters, raw: { strict: true } }],
    tool_choice: { name: "look" },
    parallel_tool_calls: false,
    reasoning_effort: "low",
    sampling_params: {
      max_new_tokens: 9,
      temperature: 0,
      top_p: 0.5,
      frequency_penalty: 1,
      presence_penalty: -1,
      stop: ["x"],
      sampling_seed: 3,
      json_schema: '{"type":"object","properties":{}}',
      top_k: -1,
      repetition_penalty: 1,
    },
  });
  const [{ path, headers, body }] = world.mock.requests as [typeof world.mock.requests[0]];
  assert.deepEqual([path, headers.get("authorization")], ["/v1/chat/completions", `Bearer ${KEY}`]);
  assert.deepEqual(body, {
    model: "gpt-4o",
    messages: [
      { role: "system", content: "Be brief" },
      { role: "user", content: [{ type: "text", text: "See" }, { type: "image_url", image_url: { url: "data:x" } }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c0", type: "function", function: { name: "look", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c0", content: "seen" },
    ],
    max_completion_tokens: 9,
    temperature: 0,
    top_p: 0.5,
    frequency_penalty: 1,
    presence_penalty: -1,
    stop: ["x"],
    seed: 3,
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", schema: { type: "object", properties: {} }, strict: true },
    },
    reasoning_effort: "low",
    tools: [{ type: "function", function: { strict: true, name: "look", description: "Looks", parameters } }],
    tool_choice: { type: "function", function: { name: "look" } },
    parallel_tool_calls: false,
    stream: false,
  });
  assert.deepEqual(result, {
    text: "",
    token_ids: null,
    logprobs: null,
    tool_calls: [CALL],
    reasoning: "Hm.",
    finish_reason: "tool_calls",
    usage: { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 40, reasoning_tokens: 5 },
    weight_version: null,
    // 60 at 2, 40 at 1, 20 at 10 dollars a million.
    cost_usd: 0.00036,
  });
});

Deno.test("OpenAIBackend gives text as it streams in, and calls whole", async () => {
  const parts = [
    chunk({ role: "assistant", content: "" }),
    chunk({ reasoning: "Hm" }),
    chunk({ content: "Let " }),
    chunk({ content: "me." }),
    chunk({ tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "look", arguments: "" } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"at"' } }] }),
    chunk({ tool_calls: [{ index: 1, id: "b", type: "function", function: { name: "stop", arguments: "" } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: ": 1}" } }] }),
    chunk({}, "tool_calls"),
    USAGE_CHUNK,
  ];
  await using world = worldOf(() => streamed(parts));
  const deltas: BackendDelta[] = [];
  const result = await world.backend.generate({ ...HELLO, onDelta: (delta) => deltas.push(delta) });
  assert.deepEqual(deltas, [
    { type: "reasoning", text: "Hm" },
    { type: "content", text: "Let " },
    { type: "content", text: "me." },
    { type: "tool_call", id: "a", name: "look", arguments: '{"at": 1}' },
    { type: "tool_call", id: "b", name: "stop", arguments: "{}" },
  ]);
  assert.deepEqual([result.text, result.reasoning, result.finish_reason], ["Let me.", "Hm", "tool_calls"]);
  assert.deepEqual(result.tool_calls?.map(({ id }) => id), ["a", "b"]);
  assert.equal(result.usage.prompt_tokens, 100);
  const [{ body }] = world.mock.requests as [typeof world.mock.requests[0]];
  assert.deepEqual([body.stream, body.stream_options], [true, { include_usage: true }]);
});

Deno.test("OpenAIBackend tells an end that is none of ours by its name, and a refusal as the text it is", async () => {
  const choice = (finish: string) => ({
    choices: [{ index: 0, message: { role: "assistant", content: null, refusal: "I won't" }, finish_reason: finish }],
  });
  await using world = worldOf((_, number) => completion({}, choice(number === 0 ? "content_filter" : "length")));
  const filtered = await world.backend.generate(HELLO);
  assert.deepEqual([filtered.text, filtered.finish_reason], ["I won't", "error:content_filter"]);
  assert.equal((await world.backend.generate(HELLO)).finish_reason, "length");
});

Deno.test("OpenAIBackend asks again, twice as late each time, and as late as it is told", async () => {
  const trouble = [
    () => refusal(500),
    () => new Response("<html>", { status: 503 }),
    () => refusal(429, { headers: { "retry-after": "17" } }),
  ];
  await using world = worldOf((_, number) => trouble[number]?.() ?? completion({ content: "Hi" }));
  assert.equal((await world.backend.generate(HELLO)).text, "Hi");
  // The limiter keeps the same rest that the wait has taken: no second wait.
  assert.deepEqual(world.clock.waits, [1000, 2000, 17_000]);
  assert.equal(world.mock.requests.length, 4);
});

Deno.test("OpenAIBackend reads Retry-After in milliseconds and as a date", async () => {
  const date = new Date(Date.UTC(2026, 0, 1, 0, 0, 12)).toUTCString();
  const trouble = [{ "retry-after": date }, { "retry-after-ms": "250" }, { "retry-after": "soon" }];
  await using world = worldOf((_, number) =>
    trouble[number] === undefined ? completion({ content: "Hi" }) : refusal(429, { headers: trouble[number] })
  );
  await world.backend.generate(HELLO);
  assert.deepEqual(world.clock.waits, [12_000, 250, 4000]);
});

Deno.test("OpenAIBackend spreads its waits over half of their length", async () => {
  await using world = worldOf((_, number) => number === 0 ? refusal(502) : completion({ content: "Hi" }), {
    random: () => 0,
  });
  await world.backend.generate(HELLO);
  assert.deepEqual(world.clock.waits, [500]);
});

/** An API that is asked and does not answer, and the signals that requests to it go by. */
function silentAPI() {
  const asked = Promise.withResolvers<void>();
  const end = Promise.withResolvers<Response>();
  const signals: AbortSignal[] = [];
  return {
    asked: asked.promise,
    signals,
    answer: () => {
      asked.resolve();
      return end.promise;
    },
    fetch: ((input, init) => {
      const signal = init?.signal;
      if (signal) signals.push(signal);
      // A server that is closed waits for its handlers.
      signal?.addEventListener("abort", () => end.resolve(new Response(null)));
      return fetch(input, init);
    }) satisfies typeof fetch,
  };
}

/** What the call fails with. */
async function failure(world: World, request: Partial<BackendRequest> = {}): Promise<VerbatimError> {
  return await world.backend.generate({ ...HELLO, ...request }).then(
    () => assert.fail("It did not fail"),
    (error: VerbatimError) => error,
  );
}

Deno.test("OpenAIBackend gives up after its retries, and says how long to wait", async () => {
  await using busy = worldOf(() => refusal(429, { headers: { "retry-after": "3" } }));
  const { code, retryable, retryAfterS } = await failure(busy);
  assert.deepEqual([code, retryable, retryAfterS, busy.mock.requests.length], ["busy", true, 3, 4]);
  await using dead = worldOf(() => refusal(503));
  const unavailable = await failure(dead);
  assert.deepEqual([unavailable.code, unavailable.retryAfterS, dead.mock.requests.length], [
    "engine_unavailable",
    1,
    4,
  ]);
});

Deno.test("OpenAIBackend does not sit out a long Retry-After: the caller is told", async () => {
  await using world = worldOf(() => refusal(429, { headers: { "retry-after": "3600" } }));
  const { code, retryAfterS } = await failure(world);
  assert.deepEqual([code, retryAfterS, world.mock.requests.length, world.clock.waits], ["busy", 3600, 1, []]);
});

Deno.test("OpenAIBackend never shows its key, whatever the API says", async () => {
  for (const status of [401, 403]) {
    await using world = worldOf(() => refusal(status, { message: `Incorrect API key provided: ${KEY}` }));
    const error = await failure(world);
    assert.deepEqual([error.code, error.retryable, world.mock.requests.length], ["engine_failed", false, 1]);
    assert.match(error.message, /"judge" refused its key \(see JUDGE_KEY\)/);
    assert.deepEqual(error.details, { engine_status: status });
    assert.ok(!Deno.inspect(error).includes("sk-secret"));
  }
  await using world = worldOf(() => refusal(400, { message: `What is ${KEY}?` }));
  const error = await failure(world);
  assert.deepEqual(error.details, { engine_status: 400, engine_message: "400 What is [key]?" });
});

Deno.test("OpenAIBackend does not ask again what will fail again", async () => {
  const trouble: [answer: () => Response, code: string][] = [
    [() => refusal(400, { message: "bad schema" }), "engine_failed"],
    [() => refusal(404), "engine_failed"],
    [() => refusal(400, { code: "context_length_exceeded" }), "context_length_exceeded"],
    [() => refusal(429, { code: "insufficient_quota" }), "engine_failed"],
    [() => new Response("{", { headers: { "content-type": "application/json" } }), "engine_inconsistent"],
    [() => new Response("Hello", { headers: { "content-type": "text/plain" } }), "engine_inconsistent"],
    [() => Response.json(null), "engine_inconsistent"],
    [() => Response.json({ choices: [] }), "engine_inconsistent"],
    [() => completion({ content: "Hi" }, { usage: null }), "engine_inconsistent"],
    [
      () => completion({ content: "Hi" }, { usage: { prompt_tokens: "1", completion_tokens: 2 } }),
      "engine_inconsistent",
    ],
    [() => completion({ content: "Hi" }, { choices: [{ message: { content: "Hi" } }] }), "engine_failed"],
    [() => completion({ tool_calls: [{ type: "custom", id: "c" }] }), "engine_inconsistent"],
  ];
  for (const [answer, code] of trouble) {
    await using world = worldOf(answer);
    assert.equal((await failure(world)).code, code, await answer().text());
    assert.equal(world.mock.requests.length, 1, await answer().text());
  }
});

Deno.test("OpenAIBackend asks a stream again that broke before a word, and none after one", async () => {
  const whole = [chunk({ content: "Hi" }), chunk({}, "stop"), USAGE_CHUNK];
  const early = [
    () => streamed([chunk({ role: "assistant" })], "broken"),
    () => streamed([{ error: { message: "overloaded" } }]),
    () => streamed([], "broken"),
  ];
  await using world = worldOf((_, number) => early[number]?.() ?? streamed(whole));
  const texts: string[] = [];
  const onDelta = (delta: BackendDelta) => texts.push(JSON.stringify(delta));
  assert.equal((await world.backend.generate({ ...HELLO, onDelta })).text, "Hi");
  assert.equal(world.mock.requests.length, 4);
  assert.equal(texts.length, 1);

  const late: [answer: (heard: Promise<void>) => Response, code: string][] = [
    [(heard) => streamed([chunk({ content: "Hi" })], "broken", heard), "engine_unavailable"],
    [() => streamed([chunk({ content: "Hi" }), { error: { message: "overloaded" } }]), "engine_failed"],
    [() => streamed([chunk({ content: "Hi" })], "closed"), "engine_failed"],
    [() => streamed([chunk({ content: "Hi" }), chunk({}, "stop")]), "engine_inconsistent"],
  ];
  for (const [answer, code] of late) {
    const heard = Promise.withResolvers<void>();
    await using world = worldOf(() => answer(heard.promise));
    assert.equal((await failure(world, { onDelta: () => heard.resolve() })).code, code);
    assert.equal(world.mock.requests.length, 1);
  }
});

Deno.test("OpenAIBackend ends a request that is silent, whole or streamed, and does not send it again", async () => {
  const silent = silentAPI();
  await using world = worldOf(silent.answer, { fetch: silent.fetch });
  const whole = failure(world);
  await silent.asked;
  world.clock.silence();
  assert.equal((await whole).code, "engine_timeout");
  assert.deepEqual(silent.signals.map(({ aborted }) => aborted), [true]);

  world.mock.answer = () => streamed([chunk({ content: "Hi" })], "silent");
  const heard = Promise.withResolvers<void>();
  const stream = failure(world, { onDelta: () => heard.resolve() });
  await heard.promise;
  world.clock.silence();
  assert.equal((await stream).code, "engine_timeout");
  assert.deepEqual(silent.signals.map(({ aborted }) => aborted), [true, true]);
});

Deno.test("OpenAIBackend hangs up when its caller does, also in a wait", async () => {
  const gone = new AbortController();
  const silent = silentAPI();
  await using world = worldOf(silent.answer, { fetch: silent.fetch });
  const call = assert.rejects(world.backend.generate({ ...HELLO, signal: gone.signal }), /nobody reads/);
  await silent.asked;
  gone.abort(new Error("nobody reads"));
  await call;
  assert.deepEqual(silent.signals.map(({ aborted }) => aborted), [true]);

  const late = new AbortController();
  await using waiting = worldOf(() => {
    late.abort(new Error("nobody reads"));
    return refusal(503);
  });
  await assert.rejects(waiting.backend.generate({ ...HELLO, signal: late.signal }), /nobody reads/);
  assert.equal(waiting.mock.requests.length, 1);
});

Deno.test("OpenAIBackend tries an API again that is not there", async () => {
  const mock = serveMockOpenAI(() => completion({}));
  const { url } = mock;
  await mock[Symbol.asyncDispose]();
  await using world = worldOf(() => completion({}), { baseUrl: url });
  assert.equal((await failure(world)).code, "engine_unavailable");
  assert.deepEqual(world.clock.waits, [1000, 2000, 4000]);
});

Deno.test("OpenAIBackend refuses what it has no word for, and sends nothing", async () => {
  await using world = worldOf(() => completion({}));
  const refused: [request: Partial<BackendRequest>, field: string][] = [
    [{ input_ids: [1] }, "input_ids"],
    [{ sampling_params: { top_k: 5 } }, "top_k"],
    [{ sampling_params: { stop_token_ids: [1] } }, "stop_token_ids"],
    [{ sampling_params: { regex: "a" } }, "regex"],
    [{ sampling_params: { logit_bias: { "1": 1 } } }, "logit_bias"],
    [{ reasoning_effort: "extreme" }, "reasoning_effort"],
  ];
  for (const [request, field] of refused) {
    const error = await failure(world, request);
    assert.deepEqual([error.code, error.details?.field], ["unsupported", field]);
  }
  assert.throws(() => world.backend.tokenize(), { code: "unsupported", message: /NotImplemented/ });
  assert.throws(() => world.backend.decode(), { code: "unsupported", message: /NotImplemented/ });
  assert.equal(world.backend.supportsTokenIds, false);
  assert.deepEqual(world.mock.requests, []);
});

Deno.test("OpenAIBackend runs no more at once than it may", async () => {
  let running = 0;
  let most = 0;
  await using world = worldOf(async () => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 0));
    running--;
    return completion({ content: "Hi" });
  }, { limits: { requestsPerMinute: Infinity, tokensPerMinute: Infinity, maxConcurrency: 2 } });
  await Promise.all(Array.from({ length: 8 }, () => world.backend.generate(HELLO)));
  assert.deepEqual([most, world.mock.requests.length], [2, 8]);
});

Deno.test("OpenAIBackend has no cost where no price is known, and the other name of the token limit", async () => {
  await using world = worldOf(() => completion({ content: "Hi" }), { price: null, tokenLimitField: "max_tokens" });
  const result = await world.backend.generate({ ...HELLO, sampling_params: { max_new_tokens: 4 } });
  assert.equal(result.cost_usd, null);
  assert.equal(world.mock.requests[0]?.body.max_tokens, 4);
});
