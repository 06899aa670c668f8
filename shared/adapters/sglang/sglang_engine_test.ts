import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger, type ListLogger } from "../../../tests/fixtures/list_logger.ts";
import { createScriptedFetch, type Responder, type SentRequest } from "../../../tests/fixtures/scripted_fetch.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { Engine, EngineChunk, EngineRequest } from "../../ports/engine.ts";
import { createSglangEngine } from "./sglang_engine.ts";
import { SglangWorkers } from "./sglang_workers.ts";
import { createTrackedBackground } from "../tracked_background.ts";

const RID = "0123456789abcdef0123456789abcdef";
const never = new AbortController().signal;
const encoder = new TextEncoder();

interface World {
  readonly engine: Engine;
  readonly workers: SglangWorkers;
  readonly clock: FakeClock;
  readonly logger: ListLogger;
  /** Bodies posted to /generate. */
  generated(): SentRequest[];
  /** Ids told to abort, by worker, once everything in the background is over. */
  aborted(): Promise<string[]>;
}

/** One worker behind a fetch that answers /generate as told; its weights are known to be "v". */
function worldOf(respond: Responder, options: { retryMs?: number; apiKey?: string } = {}): World {
  const clock = createFakeClock();
  const logger = createListLogger();
  const background = createTrackedBackground(logger);
  const { fetch, requests } = createScriptedFetch((request, signal) => {
    if (request.url.endsWith("/generate")) return respond(request, signal);
    return new Response(null, { status: request.url.endsWith("/abort_request") ? 200 : 404 });
  });
  const { apiKey, retryMs = 10_000 } = options;
  const workers = new SglangWorkers({ place: { type: "workers", urls: ["http://engine"] }, apiKey, clock, fetch });
  workers.versions.note("http://engine", "v");
  const engine = createSglangEngine({
    workers,
    vocabSize: 1000,
    retryMs,
    idleTimeoutMs: 60_000,
    clock,
    logger,
    background,
    random: () => 0.5,
  });
  return {
    engine,
    workers,
    clock,
    logger,
    generated: () => requests.filter(({ url }) => url.endsWith("/generate")),
    async aborted() {
      let idle = false;
      const waiting = background.idle().then(() => idle = true);
      for (let second = 0; !idle && second < 100; second++) await clock.advance(1000);
      await waiting;
      const told = requests.filter(({ url }) => url.endsWith("/abort_request"));
      return [...new Set(told.map(({ url, body }) => `${new URL(url).host} ${JSON.parse(body).rid}`))];
    },
  };
}

function requestOf(changes: Partial<EngineRequest> = {}): EngineRequest {
  return {
    rid: RID,
    input: TokenSeries.of(Uint32Array.of(1, 2)).append(Uint32Array.of(3)),
    sampling: { max_new_tokens: 8, temperature: 1 },
    routingKey: null,
    stream: false,
    ...changes,
  };
}

/** A reply that holds these ids of so many. */
function replyOf(ids: readonly number[], options: { total?: number; finish?: unknown } = {}): string {
  const { total = ids.length, finish = { type: "length", length: 8 } } = options;
  return JSON.stringify({
    output_ids: ids,
    meta_info: {
      finish_reason: finish,
      prompt_tokens: 3,
      completion_tokens: total,
      cached_tokens: 0,
      weight_version: "v",
      output_token_logprobs: ids.map((id) => [-1, id, null]),
    },
  });
}

/** A stream of these events, which then ends, or breaks, or says nothing more until it is cancelled. */
function streamOf(events: readonly string[], end: "closes" | "breaks" | "hangs" = "closes"): Response {
  let next = 0;
  return new Response(
    new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        if (next < events.length) controller.enqueue(encoder.encode(`data: ${events[next++]}\n\n`));
        else if (end === "closes") controller.close();
        else if (end === "breaks") controller.error(new TypeError("error reading a body from connection"));
        else await new Promise(() => {});
      },
    }, { highWaterMark: 0 }),
  );
}

async function collect(chunks: AsyncIterable<EngineChunk>): Promise<EngineChunk[]> {
  const all: EngineChunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

/** Runs a call that sleeps: the clock goes on until it has ended. */
async function run<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let ended = false;
  const done = (): void => void (ended = true);
  work.then(done, done);
  for (let step = 0; !ended && step < 1000; step++) await clock.advance(50);
  return await work;
}

const END: Extract<EngineChunk, { type: "end" }> = {
  type: "end",
  finish: { type: "length" },
  promptTokens: 3,
  cachedTokens: 0,
  weightVersion: "v",
};
const WHOLE: EngineChunk[] = [{ type: "tokens", ids: [5, 6], logprobs: [-1, -1] }, END];

/** A whole generation that was sent after so long. */
function wholeAfter(waitedMs: number): EngineChunk[] {
  return [WHOLE[0]!, { ...END, waitedMs }];
}

Deno.test("generate sends exactly the path's tokens and the sampling as it is", async () => {
  const { engine, generated } = worldOf(() => new Response(replyOf([5, 6])), { apiKey: "secret" });
  const sampling = { max_new_tokens: 8, stop: ["é"], top_p: undefined, skip_special_tokens: true };
  assert.deepEqual(await collect(engine.generate(requestOf({ sampling, routingKey: "task" }), never)), WHOLE);
  const [sent] = generated();
  assert.equal(
    sent?.body,
    `{"input_ids":[1,2,3],"rid":"${RID}-0000","sampling_params":{"max_new_tokens":8,"stop":["é"],` +
      '"skip_special_tokens":false},"return_logprob":true,"logprob_start_len":-1,"stream":false}',
  );
  assert.equal(sent.method, "POST");
  assert.equal(sent.url, "http://engine/generate");
  assert.equal(sent.headers.get("authorization"), "Bearer secret");
  assert.equal(sent.headers.get("x-smg-routing-key"), "task");
  assert.equal(sent.headers.get("content-type"), "application/json");
});

Deno.test("generate without key and routing key sends neither header", async () => {
  const { engine, generated } = worldOf(() => streamOf([replyOf([5, 6]), "[DONE]"]));
  assert.deepEqual(await collect(engine.generate(requestOf({ stream: true }), never)), WHOLE);
  assert.equal(generated()[0]?.headers.has("authorization"), false);
  assert.equal(generated()[0]?.headers.has("x-smg-routing-key"), false);
  assert.equal(JSON.parse(generated()[0]!.body).stream, true);
});

Deno.test("generate sends any routing key as a header can hold it, and its worker is free again afterwards", async () => {
  const { engine, workers, generated } = worldOf(() => new Response(replyOf([5, 6])));
  const keys = { "gruppe é→ 1": "gruppe %C3%A9%E2%86%92 1", "a\nb": "a%0Ab", "\ud800": "%EF%BF%BD", "50%": "50%" };
  for (const routingKey of Object.keys(keys)) {
    assert.deepEqual(await collect(engine.generate(requestOf({ routingKey }), never)), WHOLE);
  }
  assert.deepEqual(generated().map(({ headers }) => headers.get("x-smg-routing-key")), Object.values(keys));
  assert.equal(workers.pool.standing("http://engine")?.inFlight, 0);
});

Deno.test("generate gives its worker back where no call came of it", async () => {
  const { engine, workers } = worldOf(() => new Response(replyOf([5, 6])));
  const sampling = { max_new_tokens: 8, custom_params: { n: 1n as never } };
  await assert.rejects(collect(engine.generate(requestOf({ sampling }), never)), TypeError);
  assert.equal(workers.pool.standing("http://engine")?.inFlight, 0);
});

Deno.test("generate asks for the ids behind top-p beside the caller's own custom parameters", async () => {
  const { engine, generated } = worldOf(() => new Response(replyOf([5, 6])));
  const sampling = { max_new_tokens: 8, custom_params: { budget: 3 } };
  await collect(engine.generate(requestOf({ sampling, extras: { topPIds: true } }), never));
  await collect(engine.generate(requestOf({ sampling }), never));
  assert.deepEqual(generated().map(({ body }) => JSON.parse(body).sampling_params.custom_params), [
    { budget: 3, return_top_p_token_ids: true },
    { budget: 3 },
  ]);
});

Deno.test("generate tries again what can't be taken now, each time under another id of the same length", async () => {
  const answers = [503, 429, 502, 200];
  const { engine, clock, generated, aborted } = worldOf(() => {
    const status = answers.shift() ?? 500;
    return new Response(status === 200 ? replyOf([5, 6]) : "", { status });
  });
  // 100, 200 and 400 ms, spread by the middle of [0.5, 1.5).
  assert.deepEqual(await run(clock, collect(engine.generate(requestOf(), never))), wholeAfter(700));
  assert.deepEqual(
    generated().map(({ body }) => JSON.parse(body).rid),
    ["0000", "0001", "0002", "0003"].map((suffix) => `${RID}-${suffix}`),
  );
  assert.deepEqual(await aborted(), [`engine ${RID}-0002`], "a router's 502 leaves the worker at it");
});

Deno.test("generate tries again where a router lost its worker, and aborts what that one may still run", async () => {
  const answers = ["call_upstream_request_error", "read_response_body_failed"];
  const { engine, clock, generated, aborted } = worldOf(() => {
    const code = answers.shift();
    if (code === undefined) return new Response(replyOf([5, 6]));
    return Response.json({ error: { type: "Internal Server Error", code, message: "lost" } }, { status: 500 });
  });
  assert.deepEqual(await run(clock, collect(engine.generate(requestOf(), never))), wholeAfter(300));
  assert.equal(generated().length, 3);
  assert.deepEqual(await aborted(), [`engine ${RID}-0000`, `engine ${RID}-0001`]);
});

Deno.test("generate waits as long as the engine asks", async () => {
  const answers = [503, 200];
  const { engine, clock, generated } = worldOf(() =>
    answers.shift() === 503
      ? new Response("", { status: 503, headers: { "retry-after": "4" } })
      : new Response(replyOf([5, 6]))
  );
  const answer = collect(engine.generate(requestOf(), never));
  await clock.untilSleeping(1);
  await clock.advance(3999);
  assert.equal(generated().length, 1);
  await clock.advance(1);
  assert.deepEqual(await answer, wholeAfter(4000));
  assert.equal(clock.sleeping, 0);
});

Deno.test("generate gives up when the next try would come after the deadline", async () => {
  const busy = worldOf(() => new Response("", { status: 503, headers: { "retry-after": "11" } }));
  await assert.rejects(collect(busy.engine.generate(requestOf(), never)), {
    code: "engine_unavailable",
    retryAfterS: 11,
  });
  assert.equal(busy.generated().length, 1);
  const absurd = worldOf(() => new Response("", { status: 429, headers: { "retry-after": "999999999" } }));
  await assert.rejects(collect(absurd.engine.generate(requestOf(), never)), { retryAfterS: 60 }, "not in 31 years");
  const down = worldOf(() => Promise.reject(new TypeError("connection refused")), { retryMs: 1000 });
  const startMs = down.clock.now();
  await assert.rejects(run(down.clock, collect(down.engine.generate(requestOf(), never))), {
    code: "engine_unavailable",
    message: "The engine can't be reached",
  });
  assert.ok(down.generated().length > 2 && down.clock.now() - startMs <= 1000);
  await down.aborted();
});

Deno.test("generate does not try again what the engine refuses, fails at or lies about", async () => {
  const cases: [() => Response, string][] = [
    [() => new Response('{"error":{"message":"m"}}', { status: 400 }), "engine_failed"],
    [() => new Response("Internal Server Error", { status: 500 }), "engine_failed"],
    [() => new Response("<html>"), "engine_inconsistent"],
    [() => new Response(replyOf([5000])), "engine_inconsistent"],
    [() => new Response(replyOf([5], { finish: null })), "engine_inconsistent"],
  ];
  for (const [respond, code] of cases) {
    const { engine, generated } = worldOf(respond);
    await assert.rejects(collect(engine.generate(requestOf(), never)), { code });
    assert.equal(generated().length, 1);
  }
});

Deno.test("generate aborts an attempt on its worker only where the engine may still be at it", async () => {
  const cases: [Responder, string[]][] = [
    [() => new Response(replyOf([5, 6])), []],
    [() => new Response("", { status: 500 }), []],
    [() => new Response("", { status: 503 }), []],
    [() => new Response(replyOf([], { finish: { type: "abort", message: "Aborted" } })), []],
    [() => new Response(replyOf([5], { finish: { type: "abort", message: "Aborted" } })), []],
    [() => new Response("", { status: 504 }), [`engine ${RID}-0000`]],
    [() => new Response(replyOf([5], { finish: null })), [`engine ${RID}-0000`]],
    [() => new Response("{"), [`engine ${RID}-0000`]],
  ];
  for (const [respond, told] of cases) {
    const { engine, aborted } = worldOf(respond, { retryMs: 0 });
    await collect(engine.generate(requestOf(), never)).catch(() => {});
    assert.deepEqual(await aborted(), told);
  }
});

Deno.test("generate tries a stream again that breaks before its first token, and aborts the broken attempt", async () => {
  for (const stream of [true, false]) {
    let tries = 0;
    const { engine, clock, generated, aborted } = worldOf(() => {
      if (tries++ > 0) return stream ? streamOf([replyOf([5, 6]), "[DONE]"]) : new Response(replyOf([5, 6]));
      return streamOf([], "breaks");
    });
    assert.deepEqual(await run(clock, collect(engine.generate(requestOf({ stream }), never))), wholeAfter(100));
    assert.equal(generated().length, 2);
    assert.deepEqual(await aborted(), [`engine ${RID}-0000`]);
  }
});

Deno.test("generate tries nothing again once a token was seen, and aborts what may still run", async () => {
  const first = replyOf([5], { finish: null });
  const refused = JSON.stringify({ error: { message: "m", code: 503 } });
  const cases: [() => Response, string[]][] = [
    [() => streamOf([first], "breaks"), [`engine ${RID}-0000`]],
    [() => streamOf([first], "closes"), [`engine ${RID}-0000`]],
  ];
  for (const [respond, told] of cases) {
    const { engine, generated, aborted } = worldOf(respond);
    const seen: EngineChunk[] = [];
    await assert.rejects(async () => {
      for await (const chunk of engine.generate(requestOf({ stream: true }), never)) seen.push(chunk);
    }, { code: "engine_failed" });
    assert.deepEqual(seen, [{ type: "tokens", ids: [5], logprobs: [-1] }]);
    assert.equal(generated().length, 1);
    assert.deepEqual(await aborted(), told);
  }
  const { engine, generated } = worldOf(() => streamOf([first, refused]));
  await assert.rejects(collect(engine.generate(requestOf({ stream: true }), never)), { code: "engine_unavailable" });
  assert.equal(generated().length, 1);
});

Deno.test("generate reads an error under 200 as the status it names", async () => {
  const invalid = JSON.stringify({ error: { message: "m", type: "invalid_request_error", code: 400 } });
  const { engine, generated } = worldOf(() => streamOf([invalid, "[DONE]"]));
  await assert.rejects(collect(engine.generate(requestOf({ stream: true }), never)), {
    code: "engine_failed",
    retryable: false,
  });
  assert.equal(generated().length, 1);
  let tries = 0;
  const busy = JSON.stringify({ error: { message: "m", code: 503 } });
  const again = worldOf(() => streamOf([tries++ === 0 ? busy : replyOf([5, 6]), "[DONE]"]));
  assert.deepEqual(
    await run(again.clock, collect(again.engine.generate(requestOf({ stream: true }), never))),
    wholeAfter(100),
  );
});

Deno.test("generate ends a silence before the answer and within it with engine_timeout, and aborts", async () => {
  const silent: [Responder, boolean][] = [
    [() => new Promise<Response>(() => {}), false],
    [() => streamOf([], "hangs"), true],
    [() => streamOf([replyOf([5], { finish: null })], "hangs"), true],
  ];
  for (const [respond, stream] of silent) {
    const { engine, clock, generated, aborted } = worldOf((request, signal) =>
      hangingUp(respond(request, signal), signal)
    );
    let failed = false;
    const failing = assert.rejects(collect(engine.generate(requestOf({ stream }), never)), { code: "engine_timeout" })
      .then(() => failed = true);
    await clock.untilSleeping(1);
    await clock.advance(59_999);
    assert.equal(failed, false);
    await clock.advance(1);
    await failing;
    assert.equal(generated().length, 1);
    assert.deepEqual(await aborted(), [`engine ${RID}-0000`]);
    assert.equal(clock.sleeping, 0);
  }
});

Deno.test("generate takes an answer that is kept alive and does not go on for a silence", async () => {
  for (const beat of [": still here\n\n", `data: ${replyOf([], { finish: null })}\n\n`]) {
    const world = worldOf((_request, signal) => {
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        async pull(controller) {
          await world.clock.sleep(5000, signal).catch(() => controller.close());
          if (!signal.aborted) controller.enqueue(encoder.encode(beat));
        },
      }, { highWaterMark: 0 });
      return hangingUp(new Response(body), signal);
    });
    const failing = assert.rejects(collect(world.engine.generate(requestOf({ stream: true }), never)), {
      code: "engine_timeout",
    });
    await world.clock.untilSleeping(1);
    for (let beats = 0; beats < 12; beats++) await world.clock.advance(5000);
    await failing;
    assert.deepEqual(await world.aborted(), [`engine ${RID}-0000`]);
  }
});

/** A real body breaks when the request's signal aborts. */
async function hangingUp(response: Response | Promise<Response>, signal: AbortSignal): Promise<Response> {
  const { body, status } = await response;
  const reader = body!.getReader();
  return new Response(
    new ReadableStream<Uint8Array<ArrayBuffer>>({
      start(controller) {
        signal.addEventListener("abort", () => controller.error(signal.reason), { once: true });
      },
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    }, { highWaterMark: 0 }),
    { status },
  );
}

Deno.test("generate ends with the caller's abort wherever it is: in the queue, in an answer, in a pause between tries", async () => {
  const reason = new Error("gone");
  const hangs: Responder = () => new Promise<Response>(() => {});
  const middle: Responder = (_, signal) => hangingUp(streamOf([replyOf([5], { finish: null })], "hangs"), signal);
  const pause: Responder = () => new Response("", { status: 503 });
  for (const [respond, told] of [[hangs, 1], [middle, 1], [pause, 0]] as const) {
    const { engine, clock, generated, aborted } = worldOf(respond);
    const caller = new AbortController();
    const rejected = assert.rejects(collect(engine.generate(requestOf({ stream: true }), caller.signal)), reason);
    await clock.untilSleeping(1);
    await clock.advance(1);
    caller.abort(reason);
    await rejected;
    assert.equal(generated().length, 1);
    assert.equal((await aborted()).length, told);
    assert.equal(clock.sleeping, 0);
  }
  const { engine, generated } = worldOf(hangs);
  await assert.rejects(collect(engine.generate(requestOf(), AbortSignal.abort(reason))), reason);
  assert.equal(generated().length, 0);
});

Deno.test("generate aborts on the engine when its reader leaves before the end", async () => {
  const { engine, aborted } = worldOf((_, signal) =>
    hangingUp(streamOf([replyOf([5], { finish: null })], "hangs"), signal)
  );
  for await (const chunk of engine.generate(requestOf({ stream: true }), never)) {
    assert.equal(chunk.type, "tokens");
    break;
  }
  assert.deepEqual(await aborted(), [`engine ${RID}-0000`]);
});

Deno.test("score sends prompt and response, and asks for logprobs from the prompt's last position", async () => {
  const scores = JSON.stringify({
    output_ids: [9],
    meta_info: { finish_reason: { type: "length" }, input_token_logprobs: [[null, 2, null], [-0.5, 3, null]] },
  });
  const { engine, generated } = worldOf(() => new Response(scores));
  const request = { rid: RID, prompt: Uint32Array.of(1, 2), response: Uint32Array.of(3) };
  assert.deepEqual(await engine.score(request, never), Float64Array.of(-0.5));
  assert.equal(
    generated()[0]?.body,
    `{"input_ids":[1,2,3],"rid":"${RID}-0000","sampling_params":{"max_new_tokens":1,"temperature":0,` +
      '"skip_special_tokens":false},"return_logprob":true,"logprob_start_len":1,"stream":false}',
  );
});

Deno.test("score fails as engine_* errors alone", async () => {
  const request = { rid: RID, prompt: Uint32Array.of(1), response: Uint32Array.of(3) };
  const cases: [Responder, string][] = [
    [() => new Response("", { status: 503 }), "engine_unavailable"],
    [() => new Response("", { status: 400 }), "engine_failed"],
    [() => new Response("{"), "engine_inconsistent"],
    [() => new Response("{}"), "engine_inconsistent"],
    [() => streamOf([], "breaks"), "engine_failed"],
    [() => Promise.reject(new TypeError("refused")), "engine_unavailable"],
  ];
  for (const [respond, code] of cases) {
    const { engine, clock } = worldOf(respond);
    await assert.rejects(engine.score(request, never), { code });
    assert.equal(clock.sleeping, 0);
  }
});

Deno.test("generate does not count a pause of our own as silence", async () => {
  const { engine, workers, clock, aborted } = worldOf(() => new Promise<Response>(() => {}));
  let failed = false;
  const failing = assert.rejects(collect(engine.generate(requestOf(), never)), { code: "engine_timeout" })
    .then(() => failed = true);
  await clock.untilSleeping(1);
  await clock.advance(50_000);
  workers.pauses.mark("http://engine", "pause");
  await clock.advance(600_000);
  workers.pauses.lift("http://engine", "pause");
  await clock.advance(59_999);
  assert.equal(failed, false);
  await clock.advance(1);
  await failing;
  await aborted();
});

Deno.test("generate asks the worker to abort before it hangs up, and hangs up once the call has ended", async () => {
  for (const stream of [true, false]) {
    const order: string[] = [];
    const ended = Promise.withResolvers<Response>();
    const clock = createFakeClock();
    const logger = createListLogger();
    const background = createTrackedBackground(logger);
    const { fetch } = createScriptedFetch((request, signal) => {
      if (request.url.endsWith("/abort_request")) {
        order.push("abort");
        if (order.filter((one) => one === "abort").length === 2) ended.resolve(new Response(replyOf([5])));
        return new Response(null);
      }
      if (!request.url.endsWith("/generate")) return new Response(null, { status: 404 });
      signal.addEventListener("abort", () => order.push("hang-up"), { once: true });
      return ended.promise;
    });
    const engine = createSglangEngine({
      url: "http://engine",
      vocabSize: 1000,
      retryMs: 0,
      idleTimeoutMs: 60_000,
      clock,
      logger,
      background,
      random: () => 0,
      fetch,
    });
    const caller = new AbortController();
    const left = assert.rejects(collect(engine.generate(requestOf({ stream }), caller.signal)), { name: "AbortError" });
    await clock.untilSleeping(1);
    caller.abort();
    await left;
    await run(clock, background.idle());
    assert.deepEqual(order, ["abort", "abort", "hang-up"]);
    assert.equal(clock.sleeping, 0);
  }
});

Deno.test("generate tries a long generation again that is lost at its end: the tries count from the first failure on", async () => {
  let tries = 0;
  const lost = Promise.withResolvers<Response>();
  const { engine, clock, aborted } = worldOf(() => tries++ === 0 ? lost.promise : new Response(replyOf([5, 6])));
  const answer = collect(engine.generate(requestOf(), never));
  await clock.untilSleeping(1);
  await clock.advance(55_000);
  lost.resolve(streamOf([], "breaks"));
  assert.deepEqual(await run(clock, answer), wholeAfter(55_100));
  await aborted();
});

Deno.test("generate tries a stream again that ends before its first token without [DONE], and aborts by the same measure", async () => {
  let tries = 0;
  const { engine, clock, generated } = worldOf(() => streamOf(tries++ === 0 ? [] : [replyOf([5, 6]), "[DONE]"]));
  assert.deepEqual(await run(clock, collect(engine.generate(requestOf({ stream: true }), never))), wholeAfter(100));
  assert.equal(generated().length, 2);
});

Deno.test("generate does not spin where it is told to come back at once", async () => {
  const answers = [503, 503, 200];
  const { engine, clock } = worldOf(() => {
    const status = answers.shift() ?? 500;
    return new Response(status === 200 ? replyOf([5, 6]) : "", { status, headers: { "retry-after": "0" } });
  });
  assert.deepEqual(await run(clock, collect(engine.generate(requestOf(), never))), wholeAfter(300));
});

Deno.test("generate sends nothing that could harm an engine", async () => {
  const { engine, generated } = worldOf(() => new Response(replyOf([5, 6])));
  const cases: [Partial<EngineRequest>, Record<string, unknown>][] = [
    [{ input: TokenSeries.EMPTY }, { code: "invalid_request" }],
    [{ input: TokenSeries.of(Uint32Array.of(1, 1000)) }, { code: "token_out_of_range" }],
    [{ input: TokenSeries.of(Uint32Array.of(4_000_000_000)).append(Uint32Array.of(1)) }, {
      code: "token_out_of_range",
    }],
    [{ sampling: { temperature: 1 } }, { message: "A request to an engine names its max_new_tokens" }],
  ];
  for (const [changes, error] of cases) {
    await assert.rejects(collect(engine.generate(requestOf(changes), never)), error);
  }
  assert.equal(generated().length, 0);
});

Deno.test("generate refuses a sampling parameter that a worker is too old for, and asks nobody about the others", async () => {
  const clock = createFakeClock();
  const logger = createListLogger();
  const releases = new Map([["a", "0.5.15.post1"], ["b", "0.5.2"]]);
  const { fetch, requests } = createScriptedFetch(({ url }) => {
    const { host, pathname } = new URL(url);
    // An old release knows the old name alone.
    if (pathname === (host === "a" ? "/server_info" : "/get_server_info")) {
      return Response.json({ version: releases.get(host), api_key: "secret" });
    }
    return pathname === "/generate" ? new Response(replyOf([5, 6])) : new Response(null, { status: 404 });
  });
  const workers = new SglangWorkers({ place: { type: "workers", urls: ["http://a", "http://b"] }, clock, fetch });
  const engine = createSglangEngine({
    workers,
    vocabSize: 1000,
    retryMs: 0,
    idleTimeoutMs: 60_000,
    clock,
    logger,
    background: createTrackedBackground(logger),
    random: () => 0,
  });
  const ask = (sampling: EngineRequest["sampling"]) =>
    collect(engine.generate(requestOf({ sampling: { max_new_tokens: 8, ...sampling } }), never));
  assert.equal((await ask({ top_k: 5, structural_tag: "{}" })).length, 2);
  assert.deepEqual(requests.map(({ url }) => new URL(url).pathname), ["/generate"]);
  await assert.rejects(ask({ sampling_seed: 1 }), {
    code: "unsupported",
    message: "sampling_seed takes SGLang 0.5.3; the engine is 0.5.2",
    details: { field: "sampling_seed", engine_version: "0.5.2" },
  });
  assert.equal((await ask({ logit_bias: { "5": 1 } })).length, 2);
  const asked = requests.length;
  await assert.rejects(ask({ stop_regex: ["x"] }), { code: "unsupported" });
  assert.equal(requests.length, asked, "they were asked before");
  releases.set("b", "0.5.15");
  await clock.advance(600_000);
  assert.equal((await ask({ sampling_seed: 1 })).length, 2);
});

Deno.test("behind a router versions are exact only while all its workers are known to have the one that is named", async () => {
  const clock = createFakeClock();
  const logger = createListLogger();
  const background = createTrackedBackground(logger);
  const versions = new Map([["a", "v"], ["b", "v"]]);
  const hosts = ["a", "b"];
  let named = "v";
  const { fetch } = createScriptedFetch(({ url }) => {
    const { host, pathname } = new URL(url);
    if (pathname === "/workers") return Response.json({ workers: hosts.map((one) => ({ url: `http://${one}` })) });
    if (pathname === "/model_info") return Response.json({ weight_version: versions.get(host) ?? "v" });
    return new Response(replyOf([5, 6]).replace('"weight_version":"v"', `"weight_version":"${named}"`));
  });
  const engine = createSglangEngine({
    url: "http://router",
    vocabSize: 1000,
    retryMs: 0,
    idleTimeoutMs: 60_000,
    clock,
    logger,
    background,
    random: () => 0,
    fetch,
  });
  const isExact = async (): Promise<boolean> => {
    const end = (await collect(engine.generate(requestOf(), never))).at(-1);
    assert.ok(end?.type === "end" && end.weightVersion === named);
    await background.idle();
    await clock.advance(1000);
    return end.weightVersions === undefined;
  };
  assert.equal(await isExact(), false, "nobody was asked before");
  assert.equal(await isExact(), true, "that reply had them asked");
  // One worker is updated, then the other: while they differ nothing is known of a call.
  versions.set("a", "w");
  named = "w";
  assert.deepEqual([await isExact(), await isExact()], [false, false]);
  named = "v";
  assert.equal(await isExact(), false);
  versions.set("b", "w");
  named = "w";
  assert.equal(await isExact(), false);
  assert.equal(await isExact(), true);
  // A worker joins.
  await clock.advance(5000);
  hosts.push("c");
  await engine.info(never);
  assert.equal(await isExact(), false);
  versions.set("c", "w");
  assert.deepEqual([await isExact(), await isExact()], [false, true]);
});
