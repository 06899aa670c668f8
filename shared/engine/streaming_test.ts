/** Streams: cumulative or deltas, the same answer as a whole one, and their ends. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { framesOf, generate, type GenerateReply, post, stream } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";

const tokenizer = byteTokenizer();

function engineOf(options: { incremental?: boolean; streamInterval?: number } = {}): EmbeddedEngine {
  return createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 512, now: () => 0, ...options });
}

/** Everything that must not depend on the way it is sent. */
function essence({ meta_info: meta, ...rest }: GenerateReply): unknown {
  const { cached_tokens: _cached, id: _id, ...facts } = meta;
  return { ...rest, ...facts };
}

const requests = fc.record({
  input_ids: fc.array(fc.integer({ min: 0, max: 264 }), { minLength: 1, maxLength: 8 }),
  return_logprob: fc.boolean(),
  logprob_start_len: fc.constantFrom(-1, 0),
  top_logprobs_num: fc.constantFrom(0, 2),
  sampling_params: fc.record({
    sampling_seed: fc.nat(),
    max_new_tokens: fc.integer({ min: 0, max: 12 }),
    stop: fc.constantFrom([], ["e", "ab"]),
    temperature: fc.constantFrom(1, 3),
  }),
});

Deno.test("a cumulative stream ends with the whole answer, every frame a beginning of it", async () => {
  const engine = engineOf();
  await fc.assert(
    fc.asyncProperty(requests, async (body) => {
      const whole = await generate(engine, body);
      const frames = await stream(engine, body);
      assert.deepEqual(essence(frames.at(-1)!), essence(whole));
      assert.equal(frames.length, Math.max(1, whole.output_ids.length));
      for (const [i, frame] of frames.entries()) {
        const last = i === frames.length - 1;
        assert.equal(frame.meta_info.finish_reason === null, !last);
        assert.equal(frame.meta_info.completion_tokens, frame.output_ids.length);
        assert.deepEqual(frame.output_ids, whole.output_ids.slice(0, frame.output_ids.length));
        assert.ok(whole.text.startsWith(frame.text));
        assert.deepEqual(frame.meta_info.input_token_logprobs, whole.meta_info.input_token_logprobs);
        assert.equal("e2e_latency" in frame.meta_info, last);
      }
    }),
    { numRuns: 60 },
  );
});

Deno.test("an incremental stream's deltas join to the whole answer", async () => {
  const engine = engineOf({ incremental: true });
  await fc.assert(
    fc.asyncProperty(requests, fc.integer({ min: 1, max: 4 }), async (body, interval) => {
      const whole = await generate(engine, body);
      const sampling = { ...body.sampling_params, stream_interval: interval };
      const frames = await stream(engine, { ...body, sampling_params: sampling });
      assert.equal(frames.map((frame) => frame.text).join(""), whole.text);
      assert.deepEqual(frames.flatMap((frame) => frame.output_ids), whole.output_ids);
      assert.deepEqual(
        frames.flatMap((frame) => frame.meta_info.output_token_logprobs ?? []),
        whole.meta_info.output_token_logprobs ?? [],
      );
      assert.deepEqual(
        frames.flatMap((frame) => frame.meta_info.input_token_logprobs ?? []),
        whole.meta_info.input_token_logprobs ?? [],
      );
      let count = 0;
      for (const frame of frames) assert.equal(frame.meta_info.completion_tokens, count += frame.output_ids.length);
      assert.equal(frames.length, Math.max(1, 1 + Math.ceil((whole.output_ids.length - 1) / interval)));
    }),
    { numRuns: 60 },
  );
});

Deno.test("a stream's refusal is a frame under 200, a scheduler's an ordinary frame", async () => {
  const engine = engineOf();
  const refused = await post(engine, "/generate", { input_ids: [65], stream: true, sampling_params: { top_k: 0 } });
  assert.equal(refused.status, 200);
  assert.equal(refused.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.deepEqual(await framesOf(refused), [{
    error: {
      message: "top_k must be -1 (disable) or at least 1, got 0.",
      type: "invalid_request_error",
      code: 400,
      retryable: false,
    },
  }, "[DONE]"]);
  const body = { input_ids: [65], sampling_params: { regex: "a" } };
  const [frame, ...others] = await stream(engine, body);
  assert.deepEqual(others, []);
  assert.equal(frame?.meta_info.finish_reason?.type, "abort");
  assert.equal(frame?.meta_info.finish_reason?.status_code, 400);
});

Deno.test("a stream of what Python would raise breaks after its headers", async () => {
  const response = await post(engineOf(), "/generate", {
    input_ids: [65],
    stream: true,
    sampling_params: { bogus: 1 },
  });
  assert.equal(response.status, 200);
  await assert.rejects(response.text());
});

Deno.test("a batch stream carries an index in every frame", async () => {
  const frames = await stream(engineOf(), {
    input_ids: [[65], [66, 67]],
    sampling_params: { max_new_tokens: 3, ignore_eos: true },
  });
  assert.equal(frames.length, 6);
  for (const index of [0, 1]) {
    const own = frames.filter((frame) => frame.index === index);
    assert.deepEqual(own.map((frame) => frame.output_ids.length), [1, 2, 3]);
    assert.equal(own[0]?.meta_info.prompt_tokens, index + 1);
  }
});
