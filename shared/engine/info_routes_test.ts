/** What the engine tells of itself. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { generate, post, refusalOf, until } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";

function engineOf(options: Partial<EmbeddedEngineOptions> = {}): EmbeddedEngine {
  return createEmbeddedEngine({
    tokenizer: byteTokenizer(),
    modelName: "org/model",
    maxContextTokens: 512,
    now: () => 5000,
    ...options,
  });
}

async function get(engine: EmbeddedEngine, path: string): Promise<{ status: number; body: unknown }> {
  return await refusalOf(await engine.app.request(path));
}

Deno.test("/model_info and /server_info answer under both names", async () => {
  const engine = engineOf({ weightVersion: "3" });
  const info = await get(engine, "/model_info");
  assert.deepEqual(info.body, {
    model_path: "org/model",
    tokenizer_path: "org/model",
    is_generation: true,
    preferred_sampling_params: null,
    weight_version: "3",
    has_image_understanding: false,
    has_audio_understanding: false,
    model_type: "embedded",
    architectures: ["EmbeddedForCausalLM"],
  });
  assert.deepEqual(await get(engine, "/get_model_info"), info);
  assert.deepEqual(await get(engine, "/get_server_info"), await get(engine, "/server_info"));
});

Deno.test("/weight_version is a 404 that names the place to look", async () => {
  for (const path of ["/weight_version", "/get_weight_version"]) {
    const { status, body } = await get(engineOf(), path);
    assert.equal(status, 404);
    assert.match(JSON.stringify(body), /model_info/);
  }
  assert.deepEqual(await get(engineOf(), "/nowhere"), { status: 404, body: { detail: "Not Found" } });
});

Deno.test("/v1/models lists the model and finds it by its id", async () => {
  const card = {
    id: "org/model",
    object: "model",
    created: 5,
    owned_by: "sglang",
    root: "org/model",
    parent: null,
    max_model_len: 512,
  };
  assert.deepEqual((await get(engineOf(), "/v1/models")).body, { object: "list", data: [card] });
  assert.deepEqual((await get(engineOf(), "/v1/models/org/model")).body, card);
  assert.equal((await get(engineOf(), "/v1/models/other")).status, 404);
});

Deno.test("/server_info, /get_load and /v1/loads count running and queued requests", async () => {
  const engine = engineOf({ maxRunningRequests: 1 });
  engine.faults.add({ fault: { kind: "hang", afterTokens: 2 } });
  const body = { input_ids: [65, 66, 67], sampling_params: { ignore_eos: true } };
  const replies = [generate(engine, body), generate(engine, body)];
  await until(() => engine.running === 1 && engine.queued === 1);
  const load = (await get(engine, "/get_load")).body;
  assert.deepEqual(load, [{ dp_rank: 0, num_reqs: 2, num_waiting_reqs: 1, num_tokens: 5, ts_tic: 5 }]);
  const server = await (await engine.app.request("/server_info")).json();
  assert.deepEqual(
    [server.internal_states[0].num_running_reqs, server.internal_states[0].num_waiting_reqs],
    [1, 1],
  );
  const loads = await (await engine.app.request("/v1/loads?include=core")).json();
  assert.deepEqual([loads.aggregate.total_running_reqs, loads.aggregate.total_waiting_reqs], [1, 1]);
  await post(engine, "/abort_request", { abort_all: true });
  await Promise.all(replies);
});

Deno.test("/health is an empty 200, held up by a pause, and a 503 when the probe times out", async () => {
  const timeouts: (() => void)[] = [];
  const sleep = (): Promise<void> => new Promise((resolve) => timeouts.push(resolve));
  const engine = engineOf({ sleep });
  for (const path of ["/health", "/health_generate"]) {
    assert.deepEqual(await get(engine, path), { status: 200, body: "" });
  }
  await post(engine, "/pause_generation", { mode: "in_place" });
  const late = get(engine, "/health");
  await until(() => timeouts.length === 3);
  timeouts[2]!();
  assert.deepEqual(await late, { status: 503, body: "" });
  const patient = get(engine, "/health");
  await post(engine, "/continue_generation", {});
  assert.equal((await patient).status, 200);
});

Deno.test("an API key is asked for everywhere but at /health", async () => {
  const engine = engineOf({ apiKey: "secret" });
  assert.deepEqual(await get(engine, "/v1/models"), { status: 401, body: { error: "Unauthorized" } });
  assert.equal((await get(engine, "/health")).status, 200);
  const headers = { authorization: "Bearer secret" };
  assert.equal((await engine.app.request("/v1/models", { headers })).status, 200);
});

Deno.test("/tokenize and /detokenize take one or many, under both names", async () => {
  const engine = engineOf();
  const ask = async (path: string, body: unknown) => await refusalOf(await post(engine, path, body));
  for (const prefix of ["", "/v1"]) {
    assert.deepEqual(await ask(`${prefix}/tokenize`, { prompt: "A<think>" }), {
      status: 200,
      body: { tokens: [65, 263], count: 2, max_model_len: 512 },
    });
    assert.deepEqual((await ask(`${prefix}/tokenize`, { prompt: ["A", "BC"] })).body, {
      tokens: [[65], [66, 67]],
      count: [1, 2],
      max_model_len: 512,
    });
    assert.deepEqual((await ask(`${prefix}/detokenize`, { tokens: [65, 258] })).body, { text: "A" });
    assert.deepEqual((await ask(`${prefix}/detokenize`, { tokens: [[65], [258]], skip_special_tokens: false })).body, {
      text: ["A", "<|im_end|>"],
    });
  }
  for (
    const [path, body] of [
      ["/tokenize", {}],
      ["/tokenize", { messages: [{ role: "user", content: "a" }] }],
      ["/tokenize", { prompt: 5 }],
      ["/detokenize", { tokens: [999] }],
      ["/detokenize", { tokens: "x" }],
    ] as const
  ) {
    assert.equal((await ask(path, body)).status, 400, JSON.stringify(body));
  }
});
