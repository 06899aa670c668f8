/** Aborts, pauses, weights, cache and queue, with requests that a fault holds in place. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { framesOf, generate, type GenerateReply, post, refusalOf, until } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";

const tokenizer = byteTokenizer();

/** An engine whose requests with ids that begin with `slow` stop after three tokens until they are aborted. */
function engineOf(options: Partial<EmbeddedEngineOptions> = {}): EmbeddedEngine {
  const engine = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 512, ...options });
  engine.faults.add({ when: { ridPrefix: "slow" }, fault: { kind: "hang", afterTokens: 3 } });
  return engine;
}

function request(rid: string): Record<string, unknown> {
  return { rid, input_ids: [65, 66], sampling_params: { max_new_tokens: 5, ignore_eos: true } };
}

async function replyOf(response: Promise<Response>): Promise<GenerateReply> {
  const settled = await response;
  assert.equal(settled.status, 200);
  return await settled.json();
}

const ABORTED = { type: "abort", message: "Aborted", status_code: null, err_type: null };

Deno.test("/abort_request ends a running request with what it has, by prefix of a live id", async () => {
  const engine = engineOf();
  const one = replyOf(post(engine, "/generate", request("slow1")));
  const ten = replyOf(post(engine, "/generate", request("slow10")));
  const other = replyOf(post(engine, "/generate", request("slow2")));
  await until(() => engine.running === 3);
  for (const body of [{ rid: "" }, { rid: "slow" }, { rid: "nobody" }, {}]) {
    const response = await post(engine, "/abort_request", body);
    assert.deepEqual([response.status, await response.text()], [200, ""]);
  }
  assert.equal(engine.running, 3);
  await post(engine, "/abort_request", { rid: "slow1" });
  for (const reply of [await one, await ten]) {
    assert.deepEqual(reply.meta_info.finish_reason, ABORTED);
    assert.equal(reply.output_ids.length, 3);
    assert.equal(reply.meta_info.completion_tokens, 3);
  }
  assert.equal(engine.running, 1);
  await post(engine, "/abort_request", { abort_all: true });
  assert.deepEqual((await other).meta_info.finish_reason, ABORTED);
});

Deno.test("/generate refuses an id that is in flight and takes it again afterwards", async () => {
  const engine = engineOf();
  const first = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  assert.deepEqual(await refusalOf(await post(engine, "/generate", request("slow"))), {
    status: 400,
    body: { error: { message: "Duplicate request ID detected: slow" } },
  });
  await post(engine, "/abort_request", { rid: "slow" });
  await first;
  engine.faults.clear();
  assert.equal((await generate(engine, request("slow"))).output_ids.length, 5);
});

Deno.test("an abort in the queue knows neither prompt_tokens nor cached_tokens", async () => {
  const engine = engineOf({ maxRunningRequests: 1 });
  const running = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  const queued = replyOf(post(engine, "/generate", request("queued")));
  await until(() => engine.queued === 1);
  await post(engine, "/abort_request", { rid: "queued" });
  const reply = await queued;
  assert.deepEqual(reply.meta_info.finish_reason, { type: "abort", message: "Abort in waiting queue" });
  assert.deepEqual(reply.output_ids, []);
  assert.equal(reply.meta_info.prompt_tokens, undefined);
  assert.equal(reply.meta_info.cached_tokens, undefined);
  const next = replyOf(post(engine, "/generate", request("next")));
  await until(() => engine.queued === 1);
  await post(engine, "/abort_request", { rid: "slow" });
  await running;
  assert.equal((await next).output_ids.length, 5);
});

Deno.test("a full queue is a flat 503, in a stream a frame", async () => {
  const engine = engineOf({ maxRunningRequests: 1, maxQueuedRequests: 0 });
  const running = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  assert.deepEqual(await refusalOf(await post(engine, "/generate", request("a"))), {
    status: 503,
    body: { object: "error", message: "The request queue is full.", type: "503", param: null, code: 503 },
  });
  const frames = await framesOf(await post(engine, "/generate", { ...request("b"), stream: true }));
  assert.equal(frames.length, 2);
  await post(engine, "/abort_request", { rid: "slow" });
  await running;
});

Deno.test("/pause_generation aborts by default, holds new requests, and /continue_generation lets them in", async () => {
  const engine = engineOf();
  const running = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  const paused = await post(engine, "/pause_generation", {});
  assert.deepEqual(await paused.json(), { message: "Generation paused successfully.", status: "ok" });
  assert.deepEqual((await running).meta_info.finish_reason, ABORTED);
  let answered = false;
  const held = replyOf(post(engine, "/generate", request("held"))).finally(() => answered = true);
  const gone = new AbortController();
  const left = post(engine, "/generate", request("left"), { signal: gone.signal });
  gone.abort();
  assert.equal((await left).status, 499);
  assert.deepEqual([engine.running, engine.queued, answered], [0, 0, false]);
  const resumed = await post(engine, "/continue_generation", {});
  assert.deepEqual(await resumed.json(), { message: "Generation continued successfully.", status: "ok" });
  assert.equal((await held).output_ids.length, 5);
});

Deno.test("/pause_generation in place freezes, retract requeues, and both go on to the same end", async () => {
  for (const mode of ["in_place", "retract"]) {
    const waking: (() => void)[] = [];
    const sleep = (): Promise<void> => new Promise((resolve) => waking.push(resolve));
    const engine = engineOf({ sleep, tokenDelayMs: 1 });
    const running = replyOf(post(engine, "/generate", { ...request("r"), stream: false }));
    await until(() => waking.length === 1);
    assert.equal((await post(engine, "/pause_generation", { mode })).status, 200);
    waking.pop()!();
    if (mode === "retract") await until(() => engine.queued === 1);
    assert.deepEqual([engine.running, engine.queued], mode === "retract" ? [0, 1] : [1, 0]);
    const flush = await refusalOf(await post(engine, "/update_weights_from_disk", { model_path: "m2" }));
    assert.deepEqual(flush, {
      status: 400,
      body: { success: false, message: "Cache flush failed after updating weights", num_paused_requests: 1 },
    });
    const update = { model_path: "m2", weight_version: "v2", flush_cache: false };
    assert.equal((await post(engine, "/update_weights_from_disk", update)).status, 200);
    await post(engine, "/continue_generation", {});
    let done = false;
    const reply = running.finally(() => done = true);
    await until(() => {
      waking.pop()?.();
      return done;
    });
    assert.equal((await reply).output_ids.length, 5);
    assert.equal((await reply).meta_info.num_retractions, mode === "retract" ? 1 : 0);
    assert.equal((await reply).meta_info.weight_version, "v2");
  }
});

Deno.test("a retracted request that is aborted streams its last id alone", async () => {
  const waking: (() => void)[] = [];
  const sleep = (): Promise<void> => new Promise((resolve) => waking.push(resolve));
  const engine = engineOf({ sleep, tokenDelayMs: 1 });
  const response = post(engine, "/generate", { ...request("r"), stream: true });
  const frames = response.then(framesOf);
  await until(() => waking.length === 1);
  waking.pop()!();
  await until(() => waking.length === 1);
  await post(engine, "/pause_generation", { mode: "retract" });
  waking.pop()!();
  await until(() => engine.queued === 1);
  await post(engine, "/abort_request", { rid: "r" });
  const all = await frames;
  assert.equal(all.pop(), "[DONE]");
  const [last] = all.slice(-1);
  assert.ok(last !== undefined && last !== "[DONE]");
  assert.equal(last.meta_info.finish_reason?.message, "Abort in waiting queue");
  assert.equal(last.output_ids.length, 1);
});

Deno.test("/update_weights_from_disk waits for running requests, flushes, and stamps the version", async () => {
  const engine = engineOf();
  const running = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  let updated = false;
  const update = post(engine, "/update_weights_from_disk", { model_path: "m2", weight_version: "7" })
    .finally(() => updated = true);
  const blocked = replyOf(post(engine, "/generate", request("blocked")));
  await until(() => engine.running === 1);
  assert.deepEqual([updated, engine.weightVersion], [false, "default"]);
  await post(engine, "/abort_request", { rid: "slow" });
  assert.equal((await running).meta_info.weight_version, "default");
  assert.deepEqual(await (await update).json(), {
    success: true,
    message: "Succeeded to update model weights. Weight version updated to 7.",
    num_paused_requests: 0,
  });
  const reply = await blocked;
  assert.deepEqual([reply.meta_info.weight_version, reply.meta_info.cached_tokens], ["7", 0]);
  const info = await (await engine.app.request("/model_info")).json();
  assert.deepEqual([info.model_path, info.weight_version], ["m2", "7"]);
});

Deno.test("/update_weight_version renames at once and aborts unless told not to", async () => {
  const engine = engineOf();
  const running = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  await post(engine, "/update_weight_version", { new_version: "a", abort_all_requests: false });
  assert.deepEqual([engine.running, engine.weightVersion], [1, "a"]);
  const reply = await post(engine, "/update_weight_version", { new_version: "b" });
  assert.deepEqual(await reply.json(), {
    success: true,
    message: "Weight version updated to b",
    new_version: "b",
  });
  assert.equal((await running).meta_info.weight_version, "b");
  assert.equal((await post(engine, "/update_weight_version", {})).status, 400);
});

Deno.test("/flush_cache is a 400 while a request runs, and waits where it is given time", async () => {
  const engine = engineOf({ sleep: () => new Promise(() => {}) });
  const running = replyOf(post(engine, "/generate", request("slow")));
  await until(() => engine.running === 1);
  assert.equal((await engine.app.request("/flush_cache")).status, 400);
  const waiting = engine.app.request("/flush_cache?timeout=5", { method: "POST" });
  await post(engine, "/abort_request", { rid: "slow" });
  await running;
  assert.equal((await waiting).status, 200);
});
