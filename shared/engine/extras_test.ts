/** What the engine says beside the tokens: only when asked, as a function of the ids, the same streamed and whole. */

import assert from "node:assert/strict";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { generate, type GenerateReply, post, stream } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";
import { routedExperts } from "./routed_experts.ts";

const EXPERTS = { layers: 3, topK: 2, experts: 8 };
const PROMPT = [72, 101, 108, 108, 111];

function engineOf(options: Partial<EmbeddedEngineOptions> = {}): EmbeddedEngine {
  return createEmbeddedEngine({
    tokenizer: byteTokenizer(),
    modelName: "m",
    maxContextTokens: 512,
    experts: EXPERTS,
    topPTokenIds: true,
    draftTokens: 3,
    ...options,
  });
}

function asking(fields: Record<string, unknown> = {}, sampling: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    input_ids: PROMPT,
    return_logprob: true,
    return_routed_experts: true,
    sampling_params: {
      sampling_seed: 1,
      max_new_tokens: 12,
      ignore_eos: true,
      top_p: 0.8,
      custom_params: { return_top_p_token_ids: true },
      ...sampling,
    },
    ...fields,
  };
}

function int32Of(base64: string | undefined): number[] {
  assert.ok(base64 !== undefined);
  return [...new Int32Array(Uint8Array.fromBase64(base64).buffer)];
}

Deno.test("experts are a function of the ids up to each position, different within a layer", () => {
  const ids = Uint32Array.of(5, 6, 7, 8, 9);
  const all = routedExperts(ids, { from: 0, to: 5 }, EXPERTS);
  assert.equal(all.length, 5 * 6);
  assert.deepEqual(routedExperts(ids, { from: 2, to: 4 }, EXPERTS), all.slice(12, 24));
  assert.deepEqual(routedExperts(ids.slice(0, 3), { from: 0, to: 3 }, EXPERTS), all.slice(0, 18));
  const other = routedExperts(Uint32Array.of(4, 6, 7, 8, 9), { from: 4, to: 5 }, EXPERTS);
  assert.notDeepEqual(other, all.slice(24));
  for (let row = 0; row < all.length; row += 2) assert.notEqual(all[row], all[row + 1]);
  assert.ok(all.every((expert) => expert >= 0 && expert < 8));
});

Deno.test("the experts of a request cover all positions that were computed, or those from the one asked for", async () => {
  const engine = engineOf();
  const { output_ids: ids, meta_info: meta } = await generate(engine, asking());
  const whole = routedExperts(Uint32Array.from([...PROMPT, ...ids]), { from: 0, to: PROMPT.length + 11 }, EXPERTS);
  assert.deepEqual(int32Of(meta.routed_experts), [...whole]);
  const rest = await generate(engine, asking({ routed_experts_start_len: 3 }));
  assert.deepEqual(int32Of(rest.meta_info.routed_experts), [...whole.slice(3 * 6)]);
  for (const start of [-1, 6]) {
    const refused = await post(engine, "/generate", asking({ routed_experts_start_len: start }));
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /routed_experts_start_len/);
  }
});

Deno.test("each token is among the ids it was chosen from, and those are the nucleus", async () => {
  const { output_ids: ids, meta_info: meta } = await generate(engineOf(), asking({ top_logprobs_num: 40 }));
  const kept = int32Of(meta.top_p_token_ids);
  const offsets = int32Of(meta.top_p_token_offsets);
  assert.equal(offsets.length, ids.length + 1);
  assert.deepEqual([offsets[0], offsets.at(-1)], [0, kept.length]);
  for (const [position, id] of ids.entries()) {
    const own = kept.slice(offsets[position], offsets[position + 1]);
    assert.ok(own.includes(id));
    const top = meta.output_top_logprobs![position]!;
    assert.deepEqual(own, top.slice(0, own.length).map(([, candidate]) => candidate), "the likeliest");
    const mass = (count: number) => top.slice(0, count).reduce((sum, [logprob]) => sum + Math.exp(logprob), 0);
    assert.ok(mass(own.length - 1) <= 0.8 && mass(own.length) > 0.8);
  }
});

Deno.test("nothing is said that was not asked for, or that the engine does not know", async () => {
  const unasked = await generate(engineOf(), asking({ return_routed_experts: false }, { custom_params: null }));
  const uncut = await generate(engineOf(), asking({}, { top_p: 1 }));
  const unable = await generate(
    createEmbeddedEngine({ tokenizer: byteTokenizer(), modelName: "m", maxContextTokens: 512 }),
    asking(),
  );
  const said = ({ meta_info: meta }: GenerateReply) => [
    meta.routed_experts !== undefined,
    meta.top_p_token_ids !== undefined,
    meta.top_p_token_offsets !== undefined,
    meta.spec_verify_ct !== undefined,
  ];
  assert.deepEqual(said(unasked), [false, false, false, true]);
  assert.deepEqual(said(uncut), [true, false, false, true]);
  assert.deepEqual(said(unable), [false, false, false, false]);
});

Deno.test("speculation counts its rounds: each keeps some drafts and adds a token", async () => {
  const { meta_info: meta } = await generate(engineOf(), asking());
  assert.equal(1 + meta.spec_verify_ct! + meta.spec_accept_token_num!, 12);
  assert.equal(meta.spec_draft_token_num, 3 * meta.spec_verify_ct!);
  const single = await generate(engineOf(), asking({}, { max_new_tokens: 1 }));
  assert.equal(single.meta_info.spec_verify_ct, undefined);
});

Deno.test("a stream ends with what the whole answer says; deltas say it piece by piece", async () => {
  const whole = await generate(engineOf(), asking());
  const last = (await stream(engineOf(), asking())).at(-1)!;
  for (const name of ["routed_experts", "top_p_token_ids", "top_p_token_offsets", "spec_verify_ct"] as const) {
    assert.equal(last.meta_info[name], whole.meta_info[name], name);
  }
  const frames = await stream(engineOf({ incremental: true, streamInterval: 5 }), asking());
  assert.deepEqual(
    frames.flatMap((frame) => int32Of(frame.meta_info.top_p_token_ids)),
    int32Of(whole.meta_info.top_p_token_ids),
  );
  const experts = frames.map((frame) => frame.meta_info.routed_experts);
  assert.deepEqual(experts, [...frames.slice(1).map(() => undefined), whole.meta_info.routed_experts]);
});
