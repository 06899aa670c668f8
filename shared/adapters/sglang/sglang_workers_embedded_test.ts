/** Three workers on sockets that the gateway itself chooses among: who gets which call, and what happens when they die. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../../tests/fixtures/byte_tokenizer.ts";
import { until } from "../../../tests/fixtures/engine_client.ts";
import { createListLogger, type ListLogger } from "../../../tests/fixtures/list_logger.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../engine/engine_options.ts";
import { type ServedEngine, serveEmbeddedEngine } from "../../engine/serve_embedded_engine.ts";
import type { Engine, EngineChunk } from "../../ports/engine.ts";
import type { EngineControl } from "../../ports/engine_control.ts";
import { rendezvousOrder } from "./rendezvous_hash.ts";
import { createSglangControl } from "./sglang_control.ts";
import { createSglangEngine } from "./sglang_engine.ts";
import { SglangWorkers } from "./sglang_workers.ts";
import { systemClock } from "../system_clock.ts";
import { createTrackedBackground } from "../tracked_background.ts";

const tokenizer = byteTokenizer();
const never = new AbortController().signal;

interface Worker {
  readonly embedded: EmbeddedEngine;
  readonly served: ServedEngine;
}

interface World extends AsyncDisposable {
  readonly workers: readonly Worker[];
  readonly engine: Engine;
  readonly control: EngineControl;
  readonly logger: ListLogger;
  /** The worker that a key belongs to. */
  own(key: string): Worker;
}

function worldOf(options: Partial<EmbeddedEngineOptions> & { retryMs?: number; idleTimeoutMs?: number } = {}): World {
  const { retryMs = 10_000, idleTimeoutMs = 60_000, ...engineOptions } = options;
  const made = Array.from({ length: 3 }, () => {
    const embedded = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 4096, ...engineOptions });
    return { embedded, served: serveEmbeddedEngine(embedded) };
  });
  const urls = made.map(({ served }) => served.url);
  const [first, ...others] = urls;
  const logger = createListLogger();
  const background = createTrackedBackground(logger);
  const workers = new SglangWorkers({ place: { type: "workers", urls: [first!, ...others] }, clock: systemClock });
  const engine = createSglangEngine({
    workers,
    vocabSize: tokenizer.vocabSize,
    retryMs,
    idleTimeoutMs,
    clock: systemClock,
    logger,
    background,
    random: () => 0,
  });
  return {
    workers: made,
    engine,
    control: createSglangControl({ workers, logger }),
    logger,
    own: (key) => made.find(({ served }) => served.url === rendezvousOrder(key, urls)[0])!,
    async [Symbol.asyncDispose]() {
      await background.idle();
      await Promise.all(made.map(({ served }) => served.close()));
    },
  };
}

let made = 0;

interface Asked {
  readonly key: string | null;
  readonly input?: TokenSeries;
  readonly stream?: boolean;
  readonly maxTokens?: number;
}

/** Everything that was sampled, and the end. */
async function ask(
  engine: Engine,
  { key, input = TokenSeries.of(tokenizer.encode("Hello")), stream = false, maxTokens = 12 }: Asked,
  signal = never,
): Promise<{ ids: number[]; logprobs: number[]; end: EngineChunk | null }> {
  const ids: number[] = [];
  const logprobs: number[] = [];
  let end: EngineChunk | null = null;
  const request = {
    rid: String(++made).padStart(32, "0"),
    input,
    sampling: { max_new_tokens: maxTokens, ignore_eos: true },
    routingKey: key,
    stream,
  };
  for await (const chunk of engine.generate(request, signal)) {
    if (chunk.type !== "tokens") {
      end = chunk;
      continue;
    }
    ids.push(...chunk.ids);
    logprobs.push(...chunk.logprobs);
  }
  return { ids, logprobs, end };
}

Deno.test("every turn of a key finds the one before in its worker's cache, whatever runs beside it", async () => {
  await using world = worldOf();
  const keys = Array.from({ length: 9 }, (_, k) => `task-${k}`);
  assert.equal(new Set(keys.map((key) => world.own(key).served.url)).size, 3);
  await Promise.all(keys.map(async (key) => {
    let series = TokenSeries.of(tokenizer.encode(`${key}: begin`));
    for (let turn = 0; turn < 4; turn++) {
      const { ids, end } = await ask(world.engine, { key, input: series, stream: turn % 2 === 0 });
      assert.equal(end?.type, "end");
      // What was computed: all but the last token, from which nothing was sampled yet.
      if (turn > 0) assert.equal(end.cachedTokens, series.length - tokenizer.encode(" and on").length - 1);
      series = series.append(Uint32Array.from(ids)).append(tokenizer.encode(" and on"));
    }
  }));
});

Deno.test("calls without a key are spread over all workers", async () => {
  await using world = worldOf({ firstTokenDelayMs: 20 });
  const peaks = world.workers.map(() => 0);
  const asking = Promise.all(Array.from({ length: 9 }, () => ask(world.engine, { key: null })));
  await until(() => {
    world.workers.forEach(({ embedded }, k) => peaks[k] = Math.max(peaks[k]!, embedded.running));
    return peaks.every((peak) => peak === 3);
  });
  await asking;
});

for (const stream of [false, true]) {
  Deno.test(`a call whose worker dies before ${stream ? "the first token" : "its answer"} is had from another, token by token checked`, async () => {
    await using world = worldOf();
    const own = world.own("task");
    own.embedded.faults.add({ fault: { kind: "zombie", afterTokens: stream ? 0 : 5 } });
    const asking = ask(world.engine, { key: "task", stream });
    await until(() => own.embedded.running === 1);
    await own.served.refuse();
    const { ids, logprobs, end } = await asking;
    assert.equal(ids.length, 12);
    assert.ok(end?.type === "end" && (end.waitedMs ?? 0) >= 50);
    const input = tokenizer.encode("Hello");
    const scores = await world.engine.score(
      { rid: "s".repeat(32), prompt: input, response: Uint32Array.from(ids) },
      never,
    );
    assert.deepEqual([...scores], logprobs);
    // The dead one is passed over from now on, and its key stays on the next.
    for (let k = 0; k < 4; k++) await ask(world.engine, { key: "task" });
    const states = await world.control.workers(never);
    const dead = states.find(({ url }) => url === own.served.url);
    assert.deepEqual([dead?.reachable, dead?.circuit], [false, "open"]);
    assert.deepEqual(states.filter(({ circuit }) => circuit === "closed").length, 2);
    assert.ok(states.every(({ inFlight }) => inFlight === 0));
  });
}

Deno.test("a stream whose worker dies after tokens fails and is not tried again", async () => {
  await using world = worldOf();
  world.own("task").embedded.faults.add({ fault: { kind: "die", afterTokens: 3 } });
  await assert.rejects(ask(world.engine, { key: "task", stream: true }), { code: "engine_failed" });
  assert.ok(world.logger.lines.every(({ message }) => message !== "Engine call is tried again"));
});

Deno.test("calls wait for workers that are all dead and come back", async () => {
  await using world = worldOf();
  await Promise.all(world.workers.map(({ served }) => served.refuse()));
  const asking = Promise.all(["a", "b", "c", null].map((key) => ask(world.engine, { key })));
  const tries = () => world.logger.lines.filter(({ message }) => message === "Engine call is tried again").length;
  await until(() => tries() >= 8, { looks: 1_000_000 });
  for (const { served } of world.workers) served.listen();
  for (const { ids } of await asking) assert.equal(ids.length, 12);
});

Deno.test("calls fail once workers stay dead for longer than they are tried again", async () => {
  await using world = worldOf({ retryMs: 200 });
  await Promise.all(world.workers.map(({ served }) => served.refuse()));
  await assert.rejects(ask(world.engine, { key: "task" }), { code: "engine_unavailable" });
  await assert.rejects(world.engine.info(never), { code: "engine_unavailable" });
});

Deno.test("a caller that leaves frees the worker that has its call, and no other worker is told", async () => {
  await using world = worldOf();
  for (const { embedded } of world.workers) embedded.faults.add({ fault: { kind: "zombie", afterTokens: 2 } });
  const leaving = new AbortController();
  const left = ask(world.engine, { key: "task", stream: true }, leaving.signal);
  const stays = ask(world.engine, { key: "other" });
  await until(() => world.workers.reduce((sum, { embedded }) => sum + embedded.running, 0) === 2);
  leaving.abort();
  await assert.rejects(left, { name: "AbortError" });
  await until(() => world.workers.reduce((sum, { embedded }) => sum + embedded.running, 0) === 1);
  await world.control.act("abort_all", {}, never);
  assert.equal((await stays).end?.type, "aborted");
});

Deno.test("a worker that hears an abort late is told again until its call has ended", async () => {
  await using world = worldOf();
  const { embedded } = world.own("task");
  embedded.faults.add({ fault: { kind: "zombie", afterTokens: 2 } });
  embedded.faults.add({ fault: { kind: "deaf", aborts: 3 } });
  const leaving = new AbortController();
  const left = ask(world.engine, { key: "task" }, leaving.signal);
  await until(() => embedded.running === 1);
  leaving.abort();
  await assert.rejects(left, { name: "AbortError" });
  await until(() => embedded.running === 0, { looks: 1_000_000 });
});

Deno.test("versions are exact from the first call after an update that was made through the control", async () => {
  await using world = worldOf({ weightVersion: "1" });
  const versionsOf = async (key: string): Promise<unknown> => {
    const { end } = await ask(world.engine, { key });
    assert.equal(end?.type, "end");
    return end.weightVersions ?? end.weightVersion;
  };
  const inexact = (version: string) => [{ version, start: 0, end: 12, exact: false }];
  assert.deepEqual(await versionsOf("task"), inexact("1"), "nobody was asked before");
  assert.equal(await versionsOf("task"), "1");
  await world.engine.info(never);
  for (const key of ["a", "b", "c", "d"]) assert.equal(await versionsOf(key), "1");
  await world.control.act("set_version", { new_version: "2" }, never);
  for (const key of ["task", "a", "b", "c", "d"]) assert.equal(await versionsOf(key), "2");
  // Somebody else updates one worker: its first reply can't be told apart from one that spans the update.
  const { served } = world.own("task");
  await fetch(`${served.url}/update_weight_version`, {
    method: "POST",
    body: JSON.stringify({ new_version: "3", abort_all_requests: false }),
  }).then((response) => response.body?.cancel());
  assert.deepEqual(await versionsOf("task"), inexact("3"));
  assert.equal(await versionsOf("task"), "3");
});
