import assert from "node:assert/strict";
import fc from "fast-check";
import { createFakeClock, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import {
  createPrefixEngine,
  nextToken,
  type PlannedCall,
  type PrefixEngine,
} from "../../../tests/fixtures/prefix_engine.ts";
import type { SamplingParams } from "../../core/sampling.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { EngineGate } from "./engine_gate.ts";
import { type GenerationChunk, type GenerationRequest, Generations } from "./resume_generation.ts";

const PROMPT = [7, 8, 9];
const STOP = 0;
const never = new AbortController().signal;

/** Ids as letters, so that stop strings can be written. */
const decode = (ids: readonly number[]): string => ids.map((id) => String.fromCharCode(97 + id % 26)).join("");

interface World {
  readonly engine: PrefixEngine;
  readonly generations: Generations;
  readonly gate: EngineGate;
  readonly clock: FakeClock;
}

function worldOf(plans: readonly PlannedCall[], retryMs = 1000): World {
  const clock = createFakeClock();
  const gate = new EngineGate({ mostRunning: 1, mostWaiting: 10, clock });
  const generations = new Generations({ gate, clock, logger: createListLogger(), retryMs });
  return { engine: createPrefixEngine(plans), generations, gate, clock };
}

function requestTo(
  engine: PrefixEngine,
  sampling: SamplingParams = {},
  fields: Partial<GenerationRequest> = {},
): GenerationRequest {
  return {
    engine,
    rid: "rid",
    input: TokenSeries.of(Uint32Array.from(PROMPT)),
    sampling: { max_new_tokens: 40, stop_token_ids: [STOP], ...sampling },
    routingKey: "key",
    stream: false,
    fairKey: "task",
    onAbort: "resume",
    decode,
    ...fields,
  };
}

interface Whole {
  readonly ids: number[];
  readonly logprobs: number[];
  readonly chunks: number;
  readonly end: Extract<GenerationChunk, { type: "end" }>;
}

async function whole(chunks: AsyncIterable<GenerationChunk>): Promise<Whole> {
  const [ids, logprobs]: [number[], number[]] = [[], []];
  let count = 0;
  for await (const chunk of chunks) {
    if (chunk.type === "end") return { ids, logprobs, chunks: count, end: chunk };
    count++;
    ids.push(...chunk.ids);
    logprobs.push(...chunk.logprobs);
  }
  throw new Error("no end");
}

async function run({ generations, engine }: World, sampling?: SamplingParams, fields?: Partial<GenerationRequest>) {
  return await whole(generations.run(requestTo(engine, sampling, fields), never));
}

/** A prompt after which the engine says more than a handful of tokens. */
async function uninterrupted(sampling?: SamplingParams): Promise<Whole> {
  return await run(worldOf([]), sampling);
}

Deno.test("a generation that the engine gives up anywhere, any number of times, is token by token the one it runs through", async () => {
  const calls = fc.array(fc.record({ abortAfter: fc.nat(9), chunk: fc.integer({ min: 1, max: 4 }) }), { maxLength: 8 });
  const property = fc.asyncProperty(
    calls,
    fc.boolean(),
    fc.integer({ min: 1, max: 40 }),
    async (plans, stream, most) => {
      const world = worldOf(plans, 0);
      // Calls without a token would wait; that is looked at below.
      const giving = plans.map((plan) => ({ ...plan, abortAfter: plan.abortAfter + 1 }));
      const sampling = { max_new_tokens: most, min_new_tokens: Math.min(most, 25) };
      const straight = await uninterrupted(sampling);
      const got = await run({ ...world, engine: createPrefixEngine(giving) }, sampling, { stream });
      assert.deepEqual(got.ids, straight.ids);
      assert.deepEqual(got.logprobs, straight.logprobs);
      assert.deepEqual(got.end.finish, straight.end.finish);
      assert.deepEqual([got.end.promptTokens, got.end.cachedTokens], [3, 2], "as the first call found the prompt");
      assert.deepEqual(got.end.weightVersions, [{ version: "1", start: 0, end: got.ids.length, exact: true }]);
      assert.deepEqual([world.gate.running, world.gate.waiting], [0, 0]);
      got.ids.forEach((id, k) => {
        const next = nextToken([...PROMPT, ...got.ids.slice(0, k)], "1");
        assert.deepEqual([id, got.logprobs[k]], [next.id, next.logprob]);
      });
    },
  );
  await fc.assert(property, { numRuns: 200 });
});

Deno.test("each call has an id of its own, none the beginning of another, and asks for what is left on the exact tokens", async () => {
  const world = worldOf([{ abortAfter: 4 }, { abortAfter: 0 }, { abortAfter: 3 }]);
  const sampling = { max_new_tokens: 12, min_new_tokens: 12, temperature: 0.5, logit_bias: { "3": 1 } };
  const running = run(world, sampling, { stream: true });
  await world.clock.untilSleeping(1);
  await world.clock.advance(100);
  const { ids, end } = await running;
  const { calls } = world.engine;
  assert.deepEqual(calls.map((call) => call.rid), ["rid", "rid-c0001", "rid-c0002", "rid-c0003"]);
  assert.deepEqual(calls.map((call) => [call.sampling.max_new_tokens, call.sampling.min_new_tokens]), [
    [12, 12],
    [8, 8],
    [8, 8],
    [5, 5],
  ]);
  for (const call of calls) {
    assert.deepEqual([call.routingKey, call.stream, call.sampling.temperature], ["key", true, 0.5]);
    const tokens = Array.from(call.input.toArray());
    assert.deepEqual(tokens, [...PROMPT, ...ids].slice(0, tokens.length));
  }
  assert.deepEqual(calls.map((call) => call.input.length), [3, 7, 7, 10]);
  assert.deepEqual([ids.length, end.resumed, world.generations.resumed, end.waitedMs], [12, 2, 2, 100]);
});

Deno.test("segments name the weights of each call, with neighbours of one version joined", async () => {
  const plans = [
    { abortAfter: 2, version: "1" },
    { abortAfter: 3, version: "1" },
    { abortAfter: 1, version: "2" },
    { abortAfter: null, version: "3" },
  ];
  const { ids, end } = await run(worldOf(plans), { max_new_tokens: 10, min_new_tokens: 10 });
  assert.deepEqual(end.weightVersions, [
    { version: "1", start: 0, end: 5, exact: true },
    { version: "2", start: 5, end: 6, exact: true },
    { version: "3", start: 6, end: 10, exact: true },
  ]);
  assert.equal(end.weightVersion, "3");
  ids.forEach((id, k) => {
    const { version } = end.weightVersions.find((segment) => k < segment.end)!;
    assert.equal(id, nextToken([...PROMPT, ...ids.slice(0, k)], version!).id);
  });
});

Deno.test("an abort after the last token that was wanted is an end: by a stop token, else by the limit", async () => {
  const straight = await uninterrupted({ max_new_tokens: 40 });
  assert.deepEqual(straight.end.finish, { type: "stop", matched: STOP }, "the prompt is one with a stop");
  const { length } = straight.ids;
  const cut = worldOf([{ abortAfter: 5, version: "4" }]);
  const limited = await run(cut, { max_new_tokens: 5, min_new_tokens: 5 });
  assert.deepEqual([limited.end.finish, limited.end.weightVersion], [{ type: "length" }, "4"]);
  const stopped = worldOf([{ abortAfter: length }]);
  assert.deepEqual((await run(stopped)).end.finish, { type: "stop", matched: STOP });
  const both = worldOf([{ abortAfter: length }]);
  assert.deepEqual((await run(both, { max_new_tokens: length })).end.finish, { type: "stop", matched: STOP });
  for (const world of [cut, stopped, both]) assert.equal(world.engine.calls.length, 1);
  const ignoring = worldOf([{ abortAfter: length }]);
  const { end } = await run(ignoring, { ignore_eos: true, min_new_tokens: 40 });
  assert.deepEqual([end.resumed, end.finish], [1, { type: "length" }], "a stop token that stops nothing is a token");
});

const STATES: readonly [string, SamplingParams][] = [
  ["a grammar", { json_schema: "{}" }],
  ["a frequency penalty", { frequency_penalty: 0.5 }],
  ["a presence penalty", { presence_penalty: -0.5 }],
  ["a repetition penalty", { repetition_penalty: 1.1 }],
  ["a regular expression that stops", { stop_regex: ["x+"] }],
  ["a custom processor", { custom_params: { budget: 3 } }],
];

for (const [what, params] of STATES) {
  Deno.test(`with ${what} a generation begins anew where none of it was shown, else it has failed`, async () => {
    const unseen = worldOf([{ abortAfter: 3, version: "1" }, { abortAfter: 0 }, { abortAfter: null, version: "2" }]);
    const running = run(unseen, params);
    await unseen.clock.untilSleeping(1);
    await unseen.clock.advance(100);
    const { ids, end } = await running;
    assert.deepEqual(unseen.engine.calls.map((call) => [call.input.length, call.sampling.max_new_tokens]), [
      [3, 40],
      [3, 40],
      [3, 40],
    ]);
    assert.deepEqual(end.weightVersions, [{ version: "2", start: 0, end: ids.length, exact: true }]);
    assert.equal(end.resumed, 0);
    const empty = worldOf([{ abortAfter: 0 }]);
    const streamed = run(empty, params, { stream: true });
    await empty.clock.untilSleeping(1);
    await empty.clock.advance(100);
    assert.ok((await streamed).ids.length > 0, "nothing was shown yet");
    const shown = worldOf([{ abortAfter: 3 }]);
    await assert.rejects(run(shown, params, { stream: true }), (thrown: { code: string; message: string }) => {
      assert.equal(thrown.code, "engine_failed");
      assert.match(thrown.message, /more than its tokens decides how it goes on/);
      return true;
    });
    assert.equal(shown.gate.running, 0);
  });
}

Deno.test("a stop string that may be under way keeps a generation from going on; one that is not does not", async () => {
  const sampling = { max_new_tokens: 20, min_new_tokens: 20 };
  const { ids } = await uninterrupted(sampling);
  const text = decode(ids);
  const underWay = [text.slice(4, 7) + "#"];
  const notUnderWay = ["#" + text.slice(4, 7), ""];
  for (const [stop, lengths] of [[underWay, [3, 3]], [notUnderWay, [3, 10]]] as const) {
    const unseen = worldOf([{ abortAfter: 7 }]);
    assert.deepEqual((await run(unseen, { ...sampling, stop: [...stop] })).ids, ids);
    assert.deepEqual(unseen.engine.calls.map((call) => call.input.length), lengths);
  }
  const shown = worldOf([{ abortAfter: 7 }]);
  await assert.rejects(run(shown, { ...sampling, stop: underWay }, { stream: true }), /a stop string was under way/);
});

Deno.test("a stop string that is whole at the abort has ended the generation, before its limit", async () => {
  const sampling = { max_new_tokens: 20, min_new_tokens: 20 };
  const text = decode((await uninterrupted(sampling)).ids);
  const stop = [text.slice(17, 20), text.slice(5, 8)];
  for (const [most, cut, matched] of [[20, 8, stop[1]], [8, 8, stop[1]]] as const) {
    const world = worldOf([{ abortAfter: cut }]);
    const { end, ids } = await run(world, { max_new_tokens: most, min_new_tokens: most, stop }, { stream: true });
    assert.deepEqual([end.finish, ids.length, world.engine.calls.length], [{ type: "stop", matched }, cut, 1]);
  }
});

Deno.test("with on_abort fail an abort is a failure, whatever was sampled", async () => {
  for (const abortAfter of [0, 3, (await uninterrupted()).ids.length]) {
    const world = worldOf([{ abortAfter }]);
    await assert.rejects(run(world, {}, { onAbort: "fail" }), (thrown: Record<string, unknown>) => {
      assert.deepEqual([thrown.code, thrown.retryable], ["engine_failed", true]);
      assert.deepEqual(thrown.details, { engine_message: "Aborted", aborted: true });
      return true;
    });
    assert.deepEqual([world.engine.calls.length, world.gate.running], [1, 0]);
  }
});

Deno.test("an engine that gives no token is asked again, less and less often, and given up in time", async () => {
  const world = worldOf(Array.from({ length: 99 }, () => ({ abortAfter: 0 })), 5000);
  const startMs = world.clock.now();
  const askedAtMs: number[] = [];
  const failing = assert.rejects(run(world), { code: "engine_failed", message: /again and again/ });
  for (let calls = 1; calls <= 5; calls++) {
    await world.clock.untilSleeping(1);
    askedAtMs.push(world.clock.now() - startMs);
    assert.equal(world.engine.calls.length, calls);
    await world.clock.advance(Math.min(100 * 2 ** (calls - 1), 2000));
  }
  await failing;
  assert.deepEqual([...askedAtMs, world.clock.now() - startMs], [0, 100, 300, 700, 1500, 3100]);
  assert.equal(world.engine.calls.length, 6);
});

Deno.test("a token renews the patience with an engine", async () => {
  const plans = [{ abortAfter: 0 }, { abortAfter: 1 }, { abortAfter: 0 }, { abortAfter: 1 }, { abortAfter: 0 }];
  const world = worldOf(plans, 150);
  const running = run(world, { min_new_tokens: 10 });
  for (let waits = 0; waits < 3; waits++) {
    await world.clock.untilSleeping(1);
    await world.clock.advance(100);
  }
  assert.equal((await running).end.resumed, 2);
});

Deno.test("a generation that is given up after tokens without end has failed at last", async () => {
  const world = worldOf(Array.from({ length: 99 }, () => ({ abortAfter: 1 })));
  const sampling = { max_new_tokens: 1000, min_new_tokens: 1000 };
  await assert.rejects(run(world, sampling), { code: "engine_failed", message: /33 times/ });
  const anew = worldOf(Array.from({ length: 99 }, () => ({ abortAfter: 1 })));
  await assert.rejects(run(anew, { ...sampling, presence_penalty: 1 }), { code: "engine_failed", message: /33 times/ });
});

Deno.test("while the gate is closed an aborted generation waits outside, goes first afterwards, and none of it counts against it", async () => {
  const world: World = worldOf([
    { abortAfter: 2, before: () => world.gate.pause() },
    { abortAfter: 0, before: () => world.gate.pause() },
    { abortAfter: 0 },
    { abortAfter: null, version: "2" },
  ], 150);
  const running = run(world, { min_new_tokens: 10 });
  const entered: string[] = [];
  running.then(() => entered.push("aborted"));
  for (const calls of [1, 2]) {
    await world.clock.advance(60_000);
    assert.deepEqual([world.engine.calls.length, world.gate.running, world.gate.waiting], [calls, 0, 1]);
    if (calls === 2) {
      void world.gate.enter("new", { returning: false }, never).then((slot) => {
        entered.push("new");
        slot[Symbol.dispose]();
      });
    }
    world.gate.resume();
    await world.clock.advance(0);
  }
  await world.clock.untilSleeping(1);
  await world.clock.advance(100);
  const { end } = await running;
  assert.deepEqual(end.weightVersions.map(({ version, start }) => [version, start]), [["1", 0], ["2", 2]]);
  assert.deepEqual([end.waitedMs, end.resumed], [120_100, 1]);
});

Deno.test("who leaves while the gate is closed leaves no trace", async () => {
  const world = worldOf([]);
  world.gate.pause();
  const leaving = new AbortController();
  const running = whole(world.generations.run(requestTo(world.engine), leaving.signal));
  await world.clock.advance(0);
  assert.equal(world.gate.waiting, 1);
  leaving.abort(new Error("gone"));
  await assert.rejects(running, /gone/);
  assert.deepEqual([world.gate.waiting, world.gate.running, world.engine.calls.length], [0, 0, 0]);
});

Deno.test("a reader that stops in the middle gives its place back", async () => {
  const world = worldOf([]);
  for await (const chunk of world.generations.run(requestTo(world.engine, {}, { stream: true }), never)) {
    assert.equal(chunk.type, "tokens");
    break;
  }
  assert.equal(world.gate.running, 0);
});
