/** Sampling parameters on their way: those that arrive cost one trial, those that are dropped are refused. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../../tests/fixtures/byte_tokenizer.ts";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../engine/embedded_engine.ts";
import type { Engine, EngineChunk } from "../../ports/engine.ts";
import { withSamplingTrials } from "./sampling_trial.ts";
import { createSglangEngine } from "./sglang_engine.ts";
import { createTrackedBackground } from "../tracked_background.ts";

const tokenizer = byteTokenizer();
const never = new AbortController().signal;
/** Begins the ids of requests that are no trials. */
const OWN = "own";

interface World {
  readonly embedded: EmbeddedEngine;
  readonly engine: Engine;
  readonly clock: FakeClock;
  /** Names that do not reach the worker. */
  readonly dropped: Set<string>;
  /** Sampling parameters of trials, as the worker got them. */
  readonly trials: Record<string, unknown>[];
  /** Of other requests. */
  readonly asked: Record<string, unknown>[];
}

/** An engine behind a router that drops what a test names. */
function world(): World {
  const embedded = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 512 });
  const clock = createFakeClock();
  const logger = createListLogger();
  const dropped = new Set<string>();
  const trials: Record<string, unknown>[] = [];
  const asked: Record<string, unknown>[] = [];
  let made = 0;
  const sglang = createSglangEngine({
    url: "http://router",
    vocabSize: tokenizer.vocabSize,
    retryMs: 0,
    idleTimeoutMs: 60_000,
    clock,
    logger,
    background: createTrackedBackground(logger),
    random: () => 0,
    async fetch(input, init) {
      const request = new Request(input, init);
      if (!request.url.endsWith("/generate")) return await embedded.app.fetch(request);
      const body = await request.json();
      for (const name of dropped) delete body.sampling_params[name];
      (body.rid.startsWith(OWN) ? asked : trials).push(body.sampling_params);
      return await embedded.app.fetch(new Request(input, { ...init, body: JSON.stringify(body) }));
    },
  });
  const newRid = (): string => String(++made).padStart(32, "f");
  return { embedded, engine: withSamplingTrials(sglang, { tokenizer, clock, newRid }), clock, dropped, trials, asked };
}

async function generate({ engine }: World, sampling: SamplingParams, signal = never): Promise<EngineChunk[]> {
  return await Array.fromAsync(engine.generate({
    rid: OWN + crypto.randomUUID(),
    input: TokenSeries.of(tokenizer.encode("Say something")),
    sampling: { max_new_tokens: 16, ...sampling },
    routingKey: null,
    stream: false,
  }, signal));
}

function ended(): EngineChunk {
  return {
    type: "end",
    finish: { type: "length" },
    promptTokens: null,
    cachedTokens: null,
    weightVersion: null,
  };
}

const TAG = JSON.stringify({ type: "structural_tag", format: { type: "const_string", value: "yes" } });
const FRAGILE: readonly (readonly [name: string, sampling: SamplingParams, dropping: string])[] = [
  ["structural_tag", { structural_tag: TAG }, "structural_tag"],
  ["logit_bias", { logit_bias: { "65": 3 } }, "logit_bias"],
  ["stop_regex", { stop_regex: ["[.!]"] }, "stop_regex"],
  ["custom_params", { custom_params: { a: 1 } }, "logit_bias"],
];

for (const [name, sampling, dropping] of FRAGILE) {
  Deno.test(`${name} that arrives costs one trial, and none for ten minutes after it`, async () => {
    const it = world();
    for (let k = 0; k < 3; k++) assert.equal((await generate(it, sampling)).at(-1)?.type, "end");
    assert.deepEqual([it.trials.length, it.asked.length], [1, 3]);
    await it.clock.advance(600_000);
    await generate(it, sampling);
    assert.equal(it.trials.length, 2);
  });

  Deno.test(`${name} that is dropped is refused, and the request is not sent`, async () => {
    const it = world();
    it.dropped.add(dropping);
    const refused = { code: "unsupported", details: { field: name, reason: "dropped before the engine" } };
    for (let k = 0; k < 3; k++) await assert.rejects(generate(it, sampling), refused);
    assert.deepEqual([it.trials.length, it.asked.length], [1, 0]);
    it.dropped.clear();
    await assert.rejects(generate(it, sampling), refused);
    await it.clock.advance(30_000);
    await generate(it, sampling);
    assert.deepEqual([it.trials.length, it.asked.length], [2, 1]);
  });
}

Deno.test("what every router lets through is not tried", async () => {
  const it = world();
  await generate(it, {
    temperature: 0.5,
    json_schema: '{"type":"object","properties":{}}',
    logit_bias: {},
    stop_regex: [],
    custom_params: {},
  });
  assert.deepEqual([it.trials.length, it.asked.length], [0, 1]);
});

Deno.test("calls that come at once wait for one trial", async () => {
  const it = world();
  await Promise.all(Array.from({ length: 5 }, () => generate(it, { logit_bias: { "65": 3 } })));
  assert.deepEqual([it.trials.length, it.asked.length], [1, 5]);
});

Deno.test("a caller that leaves during the trial sends nothing; the trial goes on and tells the next", async () => {
  const it = world();
  const gate = Promise.withResolvers<void>();
  const engine = withSamplingTrials({
    ...it.engine,
    async *generate(request) {
      it.trials.push({ ...request.sampling });
      await gate.promise;
      yield { type: "tokens", ids: Array(3).fill(tokenizer.encode("v")[0]), logprobs: [0, 0, 0] };
      yield ended();
    },
  }, { tokenizer, clock: it.clock, newRid: () => "" });
  const leaving = new AbortController();
  const left = generate({ ...it, engine }, { logit_bias: { "65": 3 } }, leaving.signal);
  leaving.abort();
  await assert.rejects(left, { name: "AbortError" });
  const patient = generate({ ...it, engine }, { logit_bias: { "65": 3 } });
  gate.resolve();
  assert.equal((await patient).at(-1)?.type, "end");
  assert.deepEqual(it.trials.map(({ logit_bias }) => Object.values(Object(logit_bias))), [[1000], [3]]);
});

Deno.test("a trial that a weight update takes away is made again", async () => {
  const it = world();
  let calls = 0;
  const engine = withSamplingTrials({
    ...it.engine,
    async *generate(request, signal) {
      if (calls++ > 0) return yield* it.engine.generate({ ...request, sampling: { max_new_tokens: 3 } }, signal);
      const gone = { message: "Aborted", weightVersions: [], promptTokens: null, cachedTokens: null };
      yield { type: "aborted", ...gone };
    },
  }, { tokenizer, clock: it.clock, newRid: () => "f".repeat(32) });
  await assert.rejects(generate({ ...it, engine }, { logit_bias: { "65": 3 } }), { code: "unsupported" });
  assert.equal(calls, 2);
});

Deno.test("an engine that fails during the trial fails the call, and is tried again by the next", async () => {
  const it = world();
  it.embedded.faults.add({ when: { times: 1 }, fault: { kind: "http", status: 500, body: "Internal Server Error" } });
  await assert.rejects(generate(it, { logit_bias: { "65": 3 } }), { code: "engine_failed" });
  assert.equal((await generate(it, { logit_bias: { "65": 3 } })).at(-1)?.type, "end");
  assert.deepEqual([it.trials.length, it.asked.length], [2, 1]);
});
