/** Extras of a task, end to end: each position's are the engine's own function of the ids before it. */

import assert from "node:assert/strict";
import { createSglangEngine } from "../../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { routedExperts } from "../../shared/engine/routed_experts.ts";
import { ModelCatalog } from "../../shared/services/model_catalog.ts";
import { post } from "../fixtures/engine_client.ts";
import { agentCalls } from "./agent_calls.ts";
import { fetchThroughRouter } from "./dropping_router.ts";
import { countEngineCalls } from "./engine_calls.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, type CreatedTask, type Harness, sharedHarness, startHarness, user } from "./harness.ts";

const EXPERTS = { layers: 4, topK: 2, experts: 16 };
const WIDTH = 8;
const TOP_P = 0.8;
const ALL = ["routed_experts", "top_p_ids", "spec_info", "prefix_cache_info"];
const ENGINE = { experts: EXPERTS, topPTokenIds: true, draftTokens: 3 };

const harness = sharedHarness({ engine: ENGINE });
const { ask, result } = agentCalls(harness);

function capturing(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { capture_extras: ALL, sampling: { fixed: { top_p: TOP_P } }, ...fields };
}

/** Talks for some turns, every answer echoed; free replies, cut by a limit. */
async function talk(task: CreatedTask, questions: readonly string[], before: readonly Body[] = []): Promise<Body[]> {
  const messages = [...before];
  for (const question of questions) {
    messages.push(user(question));
    messages.push((await ask(task, messages, { max_tokens: 9 })).message);
  }
  return messages;
}

function int32Of(base64: string): Int32Array {
  return new Int32Array(Uint8Array.fromBase64(base64).buffer);
}

/** Every row's experts and ids, found again in the engine from the row's tokens. */
async function assertTrue(tokens: readonly number[], sampledMask: readonly number[], extras: Body): Promise<void> {
  const ids = Uint32Array.from(tokens);
  const expected = routedExperts(ids, { from: 0, to: ids.length - 1 }, EXPERTS);
  assert.deepEqual(extras.routed_experts.shape, [ids.length - 1, WIDTH]);
  assert.deepEqual(int32Of(extras.routed_experts.base64), expected);
  const { ids: kept, offsets } = extras.top_p_ids;
  const promptLength = tokens.length - sampledMask.length;
  assert.equal(offsets.length, sampledMask.length + 1);
  for (const [position, sampled] of sampledMask.entries()) {
    const own = kept.slice(offsets[position], offsets[position + 1]);
    if (sampled === 0) assert.deepEqual(own, []);
    else assert.deepEqual(own, await nucleusAfter(tokens.slice(0, promptLength + position)));
  }
}

/** What the engine says it chooses from after these ids. */
async function nucleusAfter(prefix: readonly number[]): Promise<number[]> {
  const response = await post(harness().development.engine, "/generate", {
    input_ids: prefix,
    sampling_params: { max_new_tokens: 1, top_p: TOP_P, custom_params: { return_top_p_token_ids: true } },
  });
  return [...int32Of((await response.json()).meta_info.top_p_token_ids)];
}

Deno.test("extras of a conversation are those of its positions, over all turns", async () => {
  const task = await harness().createTask(capturing());
  await talk(task, ["one", "two", "three", "four"]);
  const { result: region, notes } = await result(task);
  const tokens = [...region.prompt_token_ids, ...region.completion_token_ids];
  await assertTrue(tokens, region.loss_mask, region.extras);
  assert.deepEqual(region.extras_missing, []);
  assert.equal(notes.includes("extras_missing"), false);
  const { rows } = await result(task, "?format=rows");
  assert.deepEqual(rows[0].extras, region.extras);
  assert.ok(await checkRowsByForceDecoding(harness().development.services.models.default.engine, rows) >= 4);
});

Deno.test("a turn asks for the positions that its ancestors do not hold", async () => {
  const task = await harness().createTask(capturing({ capture_extras: ["routed_experts"] }));
  await talk(task, ["one", "two", "three"]);
  const turns = await harness().turns(task.id);
  let end = 0;
  for (const { extras: { routed_experts: experts }, prompt_tokens: prompt, completion_tokens: sampled } of turns) {
    assert.deepEqual([experts.start, experts.width], [end, WIDTH]);
    end += experts.rows;
    assert.equal(end, prompt + sampled - 1);
    assert.equal(experts.bytes, experts.rows * WIDTH * 4);
  }
});

Deno.test("streamed turns capture the same", async () => {
  const task = await harness().createTask(capturing());
  const stream = await harness().stream(task.key, { messages: [user("stream it")], max_tokens: 12 });
  await stream.rest();
  const { result: region } = await result(task);
  await assertTrue([...region.prompt_token_ids, ...region.completion_token_ids], region.loss_mask, region.extras);
});

Deno.test("branches share the extras of what they share", async () => {
  const task = await harness().createTask(capturing({ history: "branch" }));
  const trunk = await talk(task, ["one", "two"]);
  await talk(task, ["left"], trunk);
  await talk(task, ["right"], trunk);
  const { rows } = await result(task, "?format=rows");
  assert.equal(rows.length, 2);
  for (const row of rows) await assertTrue(row.tokens, row.sampled_mask, row.extras);
});

Deno.test("counters are those of the row's turns together", async () => {
  const task = await harness().createTask(capturing());
  await talk(task, ["one", "two", "three"]);
  const { result: region } = await result(task);
  const { spec_info: spec, prefix_cache_info: prefix } = region.extras;
  const turns = await harness().turns(task.id);
  const sum = (of: (turn: Body) => number) => turns.reduce((total, turn) => total + of(turn), 0);
  assert.deepEqual(spec, {
    spec_accept_token_num: sum((turn) => turn.extras.spec_info.spec_accept_token_num),
    spec_draft_token_num: sum((turn) => turn.extras.spec_info.spec_draft_token_num),
    spec_verify_ct: sum((turn) => turn.extras.spec_info.spec_verify_ct),
    completion_token_num: sum((turn) => turn.completion_tokens),
  });
  // Each turn's first token takes no round; every round adds a token to those it accepts.
  assert.equal(3 + spec.spec_verify_ct + spec.spec_accept_token_num, spec.completion_token_num);
  assert.deepEqual(prefix, {
    cached_tokens: sum((turn) => turn.cached_tokens),
    total_prompt_tokens: sum((turn) => turn.prompt_tokens),
  });
  assert.ok(prefix.cached_tokens > 0);
});

Deno.test("slime's samples carry the extras in slime's fields", async () => {
  const task = await harness().createTask(capturing());
  await talk(task, ["one", "two"]);
  const { result: region } = await result(task);
  const { samples: [sample] } = await result(task, "?format=slime");
  const { routed_experts: experts, top_p_ids: topPIds, spec_info: spec, prefix_cache_info: prefix } = region.extras;
  assert.equal(sample.rollout_routed_experts, experts.base64);
  assert.equal(int32Of(sample.rollout_routed_experts).length, (sample.tokens.length - 1) * WIDTH);
  assert.deepEqual(sample.rollout_top_p_token_ids, topPIds.ids);
  assert.deepEqual(sample.rollout_top_p_token_offsets, topPIds.offsets);
  assert.equal(sample.rollout_top_p_token_offsets.length, sample.response_length + 1);
  assert.deepEqual([sample.spec_info, sample.prefix_cache_info], [spec, prefix]);
  assert.deepEqual(sample.metadata.extras_missing, []);
});

Deno.test("a result carries the extras that its reader wants", async () => {
  const task = await harness().createTask(capturing());
  await talk(task, ["one"]);
  assert.deepEqual(Object.keys((await result(task)).result.extras), ALL);
  assert.deepEqual(Object.keys((await result(task, "?extras=spec_info,top_p_ids")).result.extras), [
    "top_p_ids",
    "spec_info",
  ]);
  assert.equal("extras" in (await result(task, "?extras=")).result, false);
  const { samples: [sample] } = await result(task, "?format=slime&extras=spec_info");
  assert.deepEqual([sample.rollout_routed_experts, sample.rollout_top_p_token_ids], [null, null]);
  const { status } = await harness().admin("GET", `/tasks/${task.id}/result?extras=hidden_states`);
  assert.equal(status, 400);
});

Deno.test("a task that wants no extras has none, and asks the engine for none", async () => {
  const task = await harness().createTask();
  await talk(task, ["one"]);
  const { result: region } = await result(task);
  assert.equal("extras" in region || "extras_missing" in region, false);
  const [turn] = await harness().turns(task.id);
  assert.equal("extras" in turn, false);
});

Deno.test("what the engine leaves out of one turn is missing in the row, never zeros; the tokens stand", async () => {
  const task = await harness().createTask(capturing());
  const { faults } = harness().development.engine;
  const messages = await talk(task, ["one"]);
  const drop = ["routed_experts", "top_p_token_ids", "spec_verify_ct", "cached_tokens"];
  faults.add({ when: { times: 1 }, fault: { kind: "meta", drop } });
  await talk(task, ["two", "three"], messages);
  const { result: region, notes } = await result(task);
  assert.deepEqual(region.extras, Object.fromEntries(ALL.map((name) => [name, null])));
  assert.deepEqual(region.extras_missing, ALL.map((extra) => ({ extra, turn: 1, reason: "dropped" })));
  assert.ok(notes.includes("extras_missing"));
  assert.equal(region.turns.length, 3);
  const turns = await harness().turns(task.id);
  assert.deepEqual(turns[1].extras.routed_experts, { missing: "dropped" });
  assert.equal(turns[2].extras.routed_experts.missing, undefined);
  const { samples: [sample] } = await result(task, "?format=slime");
  assert.deepEqual([sample.rollout_routed_experts, sample.rollout_top_p_token_offsets], [null, null]);
  assert.equal("spec_info" in sample || "prefix_cache_info" in sample, false);
  assert.equal(sample.metadata.extras_missing.length, 4);
});

for (const streams of [false, true]) {
  Deno.test(`a generation that the engine gave up goes on with its extras (${streams ? "streamed" : "whole"})`, async () => {
    const task = await harness().createTask(capturing());
    const { faults } = harness().development.engine;
    faults.add({ when: { times: 1 }, fault: { kind: "abort", by: "user", afterTokens: 4 } });
    const request = { messages: [user("go on")], max_tokens: 12 };
    if (streams) await (await harness().stream(task.key, request)).rest();
    else assert.equal((await harness().chat(task.key, request)).status, 200);
    const [turn] = await harness().turns(task.id);
    assert.equal(turn.resumed, 1);
    const { result: region } = await result(task);
    await assertTrue([...region.prompt_token_ids, ...region.completion_token_ids], region.loss_mask, region.extras);
  });
}

Deno.test("what an engine gives up without its extras is missing for good", async () => {
  const task = await harness().createTask(capturing());
  const { faults } = harness().development.engine;
  faults.add({ when: { times: 1 }, fault: { kind: "abort", by: "user", afterTokens: 4 } });
  faults.add({ when: { times: 1 }, fault: { kind: "meta", drop: ["routed_experts", "top_p_token_offsets"] } });
  assert.equal((await harness().chat(task.key, { messages: [user("go on")], max_tokens: 12 })).status, 200);
  const { result: region } = await result(task);
  assert.deepEqual(region.extras_missing, [
    { extra: "routed_experts", turn: 0, reason: "interrupted" },
    { extra: "top_p_ids", turn: 0, reason: "interrupted" },
  ]);
  assert.notEqual(region.extras.spec_info, null);
});

Deno.test("a replay samples nothing anew and captures nothing anew", async () => {
  const task = await harness().createTask(capturing({ on_repeat: "replay" }));
  const request = { messages: [user("twice")], max_tokens: 6 };
  await harness().chat(task.key, request);
  const again = await harness().chat(task.key, request);
  assert.equal(again.headers.get("x-verbatim-turn"), "0");
  const { result: region } = await result(task);
  await assertTrue([...region.prompt_token_ids, ...region.completion_token_ids], region.loss_mask, region.extras);
});

/** Creates a task that must be refused; why. */
async function refused(other: Harness, extra: string): Promise<string> {
  const { status, body } = await other.admin("POST", "/tasks", capturing({ capture_extras: [extra] }));
  assert.deepEqual([status, body.error.code, body.error.details.field], [400, "unsupported", "capture_extras"]);
  return body.error.details.reason;
}

Deno.test("an extra that the engine does not say is refused when the task is created", async () => {
  await using plain = await startHarness();
  const calls = countEngineCalls(plain);
  for (const extra of ["routed_experts", "top_p_ids", "spec_info"]) {
    assert.match(await refused(plain, extra), new RegExp(`^${extra}: .*drops the field`));
  }
  assert.equal(calls(), 3);
  await refused(plain, "routed_experts");
  assert.equal(calls(), 3, "what was found is kept");
  const { status } = await plain.admin("POST", "/tasks", { capture_extras: ["prefix_cache_info"] });
  assert.deepEqual([status, calls()], [201, 3], "this one every engine says");
});

Deno.test("an extra that a router drops on the way is refused though the engine says it", async () => {
  const { default: model } = harness().development.services.models;
  const { logger, background } = harness().development.services;
  const engine = createSglangEngine({
    url: harness().development.served.url,
    vocabSize: harness().development.tokenizer.vocabSize,
    retryMs: 0,
    idleTimeoutMs: 10_000,
    clock: systemClock,
    logger,
    background,
    random: Math.random,
    fetch: fetchThroughRouter,
  });
  const services = { models: new ModelCatalog([{ ...model, name: "behind a router", engine }]) };
  await using routed = await startHarness({ services });
  for (const extra of ["routed_experts", "top_p_ids"]) assert.match(await refused(routed, extra), /drops the field/);
});

Deno.test("an engine that can't be asked is no reason to believe that it says nothing", async () => {
  await using down = await startHarness({ engine: ENGINE, environment: { ENGINE_RETRY_S: "0" } });
  await down.development.served.refuse();
  const { status, body } = await down.admin("POST", "/tasks", capturing());
  assert.deepEqual([status, body.error.code], [503, "engine_unavailable"]);
  down.development.served.listen();
  assert.equal((await down.admin("POST", "/tasks", capturing())).status, 201);
});

Deno.test("while the engines are paused a task is not created on what they can't be asked about", async () => {
  await using own = await startHarness({ engine: ENGINE });
  assert.equal((await own.admin("POST", "/engines/update", { action: "pause" })).status, 200);
  const refused = await own.admin("POST", "/tasks", { capture_extras: ["routed_experts"] });
  assert.deepEqual([refused.status, refused.body.error.code, refused.headers.get("retry-after")], [429, "busy", "5"]);
  assert.equal((await own.admin("POST", "/engines/update", { action: "continue" })).status, 200);
  assert.equal((await own.admin("POST", "/tasks", { capture_extras: ["routed_experts"] })).status, 201);
});
