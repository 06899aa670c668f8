/** The adapter against a worker on a socket: whole streams, every fault of its replies, and what its logprobs mean. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { byteTokenizer } from "../../../tests/fixtures/byte_tokenizer.ts";
import { until } from "../../../tests/fixtures/engine_client.ts";
import { createListLogger, type ListLogger } from "../../../tests/fixtures/list_logger.ts";
import { serveLoopback } from "../../../tests/fixtures/loopback.ts";
import { basisOf, isRaw, type SamplingParams } from "../../core/sampling.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../engine/engine_options.ts";
import type { Fault } from "../../engine/fault.ts";
import { type ServedEngine, serveEmbeddedEngine } from "../../engine/serve_embedded_engine.ts";
import type { Background } from "../../ports/background.ts";
import type { Engine, EngineChunk, EngineRequest } from "../../ports/engine.ts";
import { createSglangEngine } from "./sglang_engine.ts";
import { systemClock } from "../system_clock.ts";
import { createTrackedBackground } from "../tracked_background.ts";

const tokenizer = byteTokenizer();
const never = new AbortController().signal;

interface World extends AsyncDisposable {
  readonly embedded: EmbeddedEngine;
  readonly served: ServedEngine;
  readonly engine: Engine;
  readonly background: Background;
  readonly logger: ListLogger;
}

function worldOf(
  options: Partial<EmbeddedEngineOptions> & {
    url?: (served: string) => string;
    idleTimeoutMs?: number;
    retryMs?: number;
  } = {},
): World {
  const embedded = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 512, ...options });
  const served = serveEmbeddedEngine(embedded);
  const logger = createListLogger();
  const background = createTrackedBackground(logger);
  const engine = createSglangEngine({
    url: options.url?.(served.url) ?? served.url,
    apiKey: options.apiKey,
    vocabSize: tokenizer.vocabSize,
    retryMs: options.retryMs ?? 10_000,
    idleTimeoutMs: options.idleTimeoutMs ?? 60_000,
    clock: systemClock,
    logger,
    background,
    random: () => 0,
  });
  return {
    embedded,
    served,
    engine,
    background,
    logger,
    async [Symbol.asyncDispose]() {
      await background.idle();
      await served.close();
    },
  };
}

let made = 0;

function requestOf(stream: boolean, sampling: SamplingParams = {}, input = "Hello"): EngineRequest {
  return {
    rid: String(++made).padStart(32, "0"),
    input: TokenSeries.of(tokenizer.encode(input)),
    sampling: { max_new_tokens: 12, ignore_eos: true, ...sampling },
    routingKey: null,
    stream,
  };
}

/** Everything that was sampled, and the end. */
async function sampled(
  chunks: AsyncIterable<EngineChunk>,
): Promise<{ ids: number[]; logprobs: number[]; end: EngineChunk | undefined }> {
  const ids: number[] = [];
  const logprobs: number[] = [];
  for await (const chunk of chunks) {
    if (chunk.type !== "tokens") return { ids, logprobs, end: chunk };
    ids.push(...chunk.ids);
    logprobs.push(...chunk.logprobs);
  }
  return { ids, logprobs, end: undefined };
}

Deno.test("generate gives the same tokens whole, cumulative and in deltas, at any interval", async () => {
  await using cumulative = worldOf({ streamInterval: 2 });
  await using incremental = worldOf({ incremental: true, streamInterval: 3, apiKey: "secret" });
  for (const { engine } of [cumulative, incremental]) await engine.info(never);
  for (let seed = 0; seed < 10; seed++) {
    const sampling = { sampling_seed: seed, ignore_eos: false, stop: ["e"], max_new_tokens: 30 };
    const whole = await sampled(cumulative.engine.generate(requestOf(false, sampling), never));
    assert.ok(whole.end !== undefined && whole.ids.length > 0);
    for (const { engine } of [cumulative, incremental]) {
      const { ids, logprobs, end } = await sampled(engine.generate(requestOf(true, sampling), never));
      assert.deepEqual({ ids, logprobs }, { ids: whole.ids, logprobs: whole.logprobs });
      assert.deepEqual(end, { ...whole.end, cachedTokens: end?.type === "end" ? end.cachedTokens : null });
    }
  }
});

Deno.test("score finds every sampled logprob again where the basis says raw, and not where it says otherwise", async () => {
  await using world = worldOf();
  const params = fc.record({
    temperature: fc.constantFrom(1, 1, 0.7, 2),
    top_k: fc.constantFrom(-1, 20),
    top_p: fc.constantFrom(1, 0.9),
    min_p: fc.constantFrom(0, 0.05),
    frequency_penalty: fc.constantFrom(0, 0, 0, 1),
    repetition_penalty: fc.constantFrom(1, 1, 1, 1.5),
    min_new_tokens: fc.constantFrom(0, 0, 12),
    logit_bias: fc.constantFrom(undefined, undefined, { "101": 3 }),
    sampling_seed: fc.nat(),
  });
  await fc.assert(
    fc.asyncProperty(params, async (sampling) => {
      const request = requestOf(false, sampling, "score ");
      const { ids, logprobs } = await sampled(world.engine.generate(request, never));
      const scores = await world.engine.score(
        { rid: request.rid, prompt: request.input.toArray(), response: Uint32Array.from(ids) },
        never,
      );
      const same = scores.every((score, k) => score === logprobs[k]);
      assert.equal(same, isRaw(basisOf(sampling)), JSON.stringify({ sampling, scores: [...scores], logprobs }));
    }),
    { numRuns: 60 },
  );
});

const LIES: Fault[] = [
  { kind: "logprobs", problem: "missing" },
  { kind: "logprobs", problem: "short" },
  { kind: "logprobs", problem: "long" },
  { kind: "logprob", at: 4, value: null },
  { kind: "logprob", at: 4, value: "NaN" },
  { kind: "output_id", at: 4, id: 5 },
  { kind: "output_id", at: 4, id: 100_000, everywhere: true },
  { kind: "output_id", at: 4, id: -1, everywhere: true },
];

for (const stream of [false, true]) {
  for (const incremental of [false, true]) {
    const how = stream ? incremental ? "in deltas" : "cumulative" : "whole";
    if (!stream && incremental) continue;
    Deno.test(`generate refuses every lie of a reply, ${how}`, async () => {
      await using world = worldOf({ incremental });
      for (const fault of LIES) {
        world.embedded.faults.add({ fault });
        await assert.rejects(sampled(world.engine.generate(requestOf(stream), never)), { code: "engine_inconsistent" });
        world.embedded.faults.clear();
        await until(() => world.embedded.running === 0);
      }
    });
  }
}

Deno.test("generate reads a stream without counts as inconsistent: deltas can't be told from repetitions", async () => {
  await using world = worldOf({ incremental: true });
  world.embedded.faults.add({ fault: { kind: "meta", drop: ["completion_tokens"] } });
  await assert.rejects(sampled(world.engine.generate(requestOf(true), never)), { code: "engine_inconsistent" });
  assert.equal((await sampled(world.engine.generate(requestOf(false), never))).ids.length, 12);
});

Deno.test("score refuses every lie about input logprobs", async () => {
  await using world = worldOf();
  const request = { rid: "1".repeat(32), prompt: Uint32Array.of(1, 2), response: Uint32Array.of(3, 4) };
  assert.equal((await world.engine.score(request, never)).length, 2);
  for (const problem of ["missing", "short", "shifted", "null", "wrong_id"] as const) {
    world.embedded.faults.add({ fault: { kind: "input_logprobs", problem } });
    await assert.rejects(world.engine.score(request, never), { code: "engine_inconsistent" }, problem);
    world.embedded.faults.clear();
  }
});

Deno.test("generate gives every failure before the first token as what it is", async () => {
  await using world = worldOf({ retryMs: 0 });
  const cases: [Fault, boolean, string][] = [];
  for (const stream of [false, true]) {
    cases.push([{ kind: "abort", by: "validation" }, stream, "engine_failed"]);
    cases.push([{ kind: "abort", by: "scheduler", status: 400 }, stream, "engine_failed"]);
    cases.push([{ kind: "abort", by: "scheduler", status: 500 }, stream, "engine_failed"]);
    cases.push([{ kind: "abort", by: "scheduler", status: 503 }, stream, "engine_unavailable"]);
    cases.push([{ kind: "cut", afterTokens: 0 }, stream, "engine_failed"]);
    cases.push([{ kind: "cut", afterTokens: 3 }, stream, "engine_failed"]);
    cases.push([{ kind: "http", status: 429 }, stream, "engine_unavailable"]);
  }
  for (const [fault, stream, code] of cases) {
    world.embedded.faults.add({ fault });
    const what = JSON.stringify({ fault, stream });
    await assert.rejects(sampled(world.engine.generate(requestOf(stream), never)), { code }, what);
    world.embedded.faults.clear();
  }
  await until(() => world.embedded.running === 0);
});

for (const incremental of [false, true]) {
  Deno.test(`generate gives what was sampled before an abort, ${incremental ? "in deltas" : "whole and cumulative"}`, async () => {
    await using world = worldOf({ incremental, streamInterval: 2, weightVersion: "3" });
    await world.engine.info(never);
    const sampling = { sampling_seed: 7 };
    const whole = await sampled(world.engine.generate(requestOf(false, sampling), never));
    const faults: Fault[] = [
      { kind: "abort", by: "user", afterTokens: 5 },
      { kind: "abort", by: "scheduler", status: 503, afterTokens: 5, message: "Request running timeout reached." },
    ];
    for (const fault of faults) {
      for (const stream of [false, true]) {
        // Without a stream, a scheduler's abort is a status and holds no tokens.
        if (!stream && fault.kind === "abort" && fault.by === "scheduler") continue;
        world.embedded.faults.add({ when: { times: 1 }, fault });
        const { ids, logprobs, end } = await sampled(world.engine.generate(requestOf(stream, sampling), never));
        assert.deepEqual([ids, logprobs], [whole.ids.slice(0, 5), whole.logprobs.slice(0, 5)]);
        assert.equal(end?.type, "aborted");
        assert.deepEqual(end.weightVersions, [{ version: "3", start: 0, end: 5, exact: true }]);
        assert.equal(end.promptTokens, 5);
        world.embedded.faults.clear();
      }
    }
  });
}

Deno.test("generate gives an abort before the first token as one without tokens", async () => {
  await using world = worldOf();
  for (const by of ["queue", "user"] as const) {
    for (const stream of [false, true]) {
      world.embedded.faults.add({ when: { times: 1 }, fault: { kind: "abort", by } });
      const { ids, end } = await sampled(world.engine.generate(requestOf(stream), never));
      assert.ok(end?.type === "aborted");
      assert.deepEqual([ids, end.weightVersions], [[], []]);
      world.embedded.faults.clear();
    }
  }
});

Deno.test("generate tries a request again that the scheduler can't take now, and says how long that took", async () => {
  await using world = worldOf();
  for (const stream of [false, true]) {
    world.embedded.faults.add({ when: { times: 1 }, fault: { kind: "abort", by: "scheduler", status: 503 } });
    const { ids, end } = await sampled(world.engine.generate(requestOf(stream), never));
    assert.equal(ids.length, 12);
    assert.ok(end?.type === "end" && end.waitedMs !== undefined && end.waitedMs >= 50);
    world.embedded.faults.clear();
  }
});

Deno.test("generate tries a cut answer again and gives the second one whole", async () => {
  await using world = worldOf();
  for (const stream of [false, true]) {
    world.embedded.faults.add({ when: { times: 1 }, fault: { kind: "cut", afterTokens: 0 } });
    assert.equal((await sampled(world.engine.generate(requestOf(stream), never))).ids.length, 12);
  }
});

Deno.test("generate waits for an engine that comes back", async () => {
  await using world = worldOf();
  await world.served.refuse();
  const answer = sampled(world.engine.generate(requestOf(true), never));
  await until(() => world.logger.lines.some(({ message }) => message === "Engine call is tried again"));
  world.served.listen();
  assert.equal((await answer).ids.length, 12);
});

Deno.test("generate aborts a request on its worker through a router that lists it, when the caller is gone", async () => {
  const router = serveRouter();
  await using world = worldOf({ url: (worker) => router.start(worker) });
  await using _listener = router.listener();
  world.embedded.faults.add({ fault: { kind: "zombie", afterTokens: 2 } });
  const caller = new AbortController();
  const failing = assert.rejects(sampled(world.engine.generate(requestOf(true), caller.signal)), {
    name: "AbortError",
  });
  await until(() => world.embedded.running === 1);
  caller.abort();
  await failing;
  await until(() => world.embedded.running === 0);
  assert.ok(router.paths.includes("/workers") && !router.paths.includes("/abort_request"));
  await world.background.idle();
});

/** A router as SGLang's: it passes /generate on, lists its worker, and knows no abort. */
function serveRouter(): { start(worker: string): string; listener(): AsyncDisposable; paths: string[] } {
  const paths: string[] = [];
  let workerUrl = "";
  const loopback = serveLoopback((request) => {
    const { pathname } = new URL(request.url);
    paths.push(pathname);
    if (pathname === "/workers") return Response.json({ workers: [{ url: workerUrl }], total: 1 });
    if (pathname === "/generate") {
      const { method, headers, body, signal } = request;
      return fetch(`${workerUrl}/generate`, { method, headers, body, signal });
    }
    return new Response(null, { status: 404 });
  });
  return {
    paths,
    start(worker) {
      workerUrl = worker;
      return loopback.url;
    },
    listener: () => loopback,
  };
}

Deno.test("generate ends an engine that hangs with engine_timeout and frees it", async () => {
  await using world = worldOf({ idleTimeoutMs: 50 });
  for (const [stream, afterTokens] of [[false, 0], [true, 0], [true, 2]] as const) {
    world.embedded.faults.add({ fault: { kind: "zombie", afterTokens } });
    await assert.rejects(sampled(world.engine.generate(requestOf(stream), never)), { code: "engine_timeout" });
    await until(() => world.embedded.running === 0);
    world.embedded.faults.clear();
  }
});

Deno.test("info and health tell what the engine tells, and fail as engine_* errors alone", async () => {
  await using world = worldOf({ weightVersion: "3", apiKey: "secret" });
  const { engine } = world;
  assert.deepEqual(await engine.info(never), {
    modelPath: "m",
    tokenizerPath: "m",
    weightVersion: "3",
  });
  await engine.health(never);
  await assert.rejects(engine.health(AbortSignal.abort()), { name: "AbortError" });
  await world.served.refuse();
  await assert.rejects(engine.info(never), { code: "engine_unavailable" });
  await assert.rejects(engine.health(never), { code: "engine_unavailable" });
  const odd = serveLoopback(({ url }) => new Response("no JSON", { status: url.endsWith("/health") ? 503 : 200 }));
  await using _odd = odd;
  await using other = worldOf({ url: () => odd.url });
  await assert.rejects(other.engine.info(never), { code: "engine_inconsistent" });
  await assert.rejects(other.engine.health(never), { code: "engine_unavailable" });
});
