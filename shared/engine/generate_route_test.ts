/** `/generate` whole: fields, index law, what logprobs are relative to, errors, caching, batches. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { generate, post, refusalOf } from "../../tests/fixtures/engine_client.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "./embedded_engine.ts";
import type { EmbeddedEngineOptions } from "./engine_options.ts";

const tokenizer = byteTokenizer();
const VOCABULARY = tokenizer.vocabSize;

function engineOf(options: Partial<EmbeddedEngineOptions> = {}): EmbeddedEngine {
  return createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 512, ...options });
}

async function refused(engine: EmbeddedEngine, body: unknown): Promise<{ status: number; body: unknown }> {
  return await refusalOf(await post(engine, "/generate", body));
}

const ids = fc.array(fc.integer({ min: 0, max: VOCABULARY - 1 }), { minLength: 1, maxLength: 30 });

Deno.test("/generate obeys the index law of input logprobs for every start", async () => {
  const engine = engineOf();
  await fc.assert(
    fc.asyncProperty(ids, fc.double({ min: 0, max: 1, noNaN: true }), async (prompt, share) => {
      const body = { input_ids: prompt, return_logprob: true, sampling_params: { max_new_tokens: 0 } };
      const all = (await generate(engine, { ...body, logprob_start_len: 0 })).meta_info.input_token_logprobs!;
      assert.equal(all.length, prompt.length);
      const start = Math.floor(share * prompt.length);
      const some = (await generate(engine, { ...body, logprob_start_len: start })).meta_info.input_token_logprobs!;
      assert.deepEqual(some, all.slice(start).map(([logprob, id, text], j) => [j === 0 ? null : logprob, id, text]));
      const none = await generate(engine, { ...body, logprob_start_len: prompt.length });
      assert.deepEqual(none.meta_info.input_token_logprobs, []);
      assert.deepEqual(none.meta_info.finish_reason, { type: "length", length: 0 });
    }),
    { numRuns: 30 },
  );
});

Deno.test("/generate reports top and chosen logprobs by position, the first input row null", async () => {
  const reply = await generate(engineOf(), {
    input_ids: [65, 66, 67],
    return_logprob: true,
    logprob_start_len: 1,
    top_logprobs_num: VOCABULARY,
    token_ids_logprob: [9, 5],
    return_text_in_logprobs: true,
    return_prompt_token_ids: true,
    sampling_params: { max_new_tokens: 2, ignore_eos: true },
  });
  const { meta_info: meta } = reply;
  assert.deepEqual(reply.prompt_token_ids, [65, 66, 67]);
  assert.deepEqual(meta.input_token_logprobs?.map(([, id, text]) => [id, text]), [[66, "B"], [67, "C"]]);
  assert.equal(meta.output_token_logprobs_length, 2);
  assertRows(meta.input_top_logprobs!, meta.input_token_ids_logprobs!);
  assertRows([null, ...meta.output_top_logprobs!], [null, ...meta.output_token_ids_logprobs!]);
});

Deno.test("/generate gives the input's top lists flat where asked to, with the same values", async () => {
  const body = {
    input_ids: [65, 66, 67, 68],
    return_logprob: true,
    logprob_start_len: 1,
    top_logprobs_num: 3,
    sampling_params: { max_new_tokens: 1 },
  };
  const { meta_info: nested } = await generate(engineOf(), body);
  const entries = nested.input_top_logprobs!.flatMap((row) => row ?? []);
  const ask = async (fields: Record<string, boolean>, engine = engineOf()) =>
    (await generate(engine, { ...body, ...fields })).meta_info;
  const numbers = await ask({ return_flat_raw_top_logprobs: true });
  assert.deepEqual(numbers.input_top_logprobs_val_flat, entries.map(([logprob]) => logprob));
  assert.deepEqual(numbers.input_top_logprobs_idx_flat, entries.map(([, id]) => id));
  assert.deepEqual([numbers.input_top_logprobs_shape, numbers.input_top_logprobs_null_prefix], [[2, 3], 1]);
  assert.ok(!("input_top_logprobs" in numbers));
  const both = { return_flat_raw_top_logprobs: true, return_flat_raw_top_logprobs_b64: true };
  const base64 = await ask(both);
  const bytes = (text: string | undefined) => Uint8Array.from(atob(text!), (character) => character.charCodeAt(0));
  const values = new Float32Array(bytes(base64.input_top_logprobs_val_flat_b64).buffer);
  assert.deepEqual([...values], entries.map(([logprob]) => logprob));
  const ids = new Int32Array(bytes(base64.input_top_logprobs_idx_flat_b64).buffer);
  assert.deepEqual([...ids], entries.map(([, id]) => id));
  assert.equal(base64.input_top_logprobs_val_flat_b64_dtype, "float32");
  assert.equal(base64.input_top_logprobs_idx_flat_b64_dtype, "int32");
  assert.ok(!("input_top_logprobs_val_flat" in base64));
  assert.equal(base64.output_top_logprobs?.length, 1);
  const old = await ask(both, engineOf({ flatTopLogprobs: false }));
  assert.deepEqual(old.input_top_logprobs, nested.input_top_logprobs);
  assert.ok(!("input_top_logprobs_shape" in old));
  const { status } = await refused(engineOf(), { ...body, return_flat_raw_top_logprobs_b64: true });
  assert.equal(status, 400);
});

type Rows = readonly (readonly [number, number, string | null][] | null)[];

function assertRows(tops: Rows, rows: Rows): void {
  assert.equal(tops[0], null);
  assert.equal(rows[0], null);
  for (const [position, top] of tops.entries()) {
    const row = rows[position];
    if (!top || !row) continue;
    assert.equal(new Set(top.map(([, id]) => id)).size, VOCABULARY);
    assert.ok(top.every(([logprob], rank) => rank === 0 || logprob <= top[rank - 1]![0]));
    assert.ok(Math.abs(top.reduce((sum, [logprob]) => sum + Math.exp(logprob), 0) - 1) < 1e-5);
    assert.deepEqual(row.map(([, id, text]) => [id, text]), [[9, "\t"], [5, "\u0005"]]);
    for (const entry of row) assert.deepEqual(top.find(([, id]) => id === entry[1]), entry);
  }
}

Deno.test("/generate gives output logprobs of logits / T, not renormalised over what is kept", async () => {
  const engine = engineOf();
  const body = { input_ids: [65, 66], return_logprob: true, top_logprobs_num: VOCABULARY };
  const raw = await generate(engine, { ...body, sampling_params: { max_new_tokens: 1 } });
  const logits = raw.meta_info.output_top_logprobs![0]!;
  for (const temperature of [0.5, 2]) {
    const norm = Math.log(logits.reduce((sum, [logprob]) => sum + Math.exp(logprob / temperature), 0));
    const sampled = await generate(engine, {
      ...body,
      sampling_params: { max_new_tokens: 1, temperature, top_p: 0.6, top_k: 3 },
    });
    const [[logprob, id]] = sampled.meta_info.output_token_logprobs as [[number, number, null]];
    const own = logits.find((entry) => entry[1] === id)![0];
    assert.ok(Math.abs(logprob - (own / temperature - norm)) < 1e-4);
  }
  const greedy = await generate(engine, { ...body, sampling_params: { max_new_tokens: 1, temperature: 0 } });
  assert.deepEqual(greedy.meta_info.output_token_logprobs![0], logits[0]);
});

Deno.test("/generate applies penalties and biases to output logprobs only", async () => {
  const engine = engineOf();
  const sampling = { max_new_tokens: 3, temperature: 0, logit_bias: { "7": 60 }, presence_penalty: 2 };
  const reply = await generate(engine, { input_ids: [65, 66], return_logprob: true, sampling_params: sampling });
  assert.deepEqual(reply.output_ids, [7, 7, 7]);
  const forced = await generate(engine, {
    input_ids: [65, 66, 7, 7, 7],
    return_logprob: true,
    logprob_start_len: 1,
    sampling_params: { ...sampling, max_new_tokens: 0 },
  });
  for (const [logprob] of reply.meta_info.output_token_logprobs!) assert.ok(logprob! > -0.01);
  for (const [logprob] of forced.meta_info.input_token_logprobs!.slice(1)) assert.ok(logprob! < -5);
});

Deno.test("/generate is a function of seed and prefix with sampling_seed, of the injected source without", async () => {
  const draw = async (random: number, params: Record<string, unknown>): Promise<string> => {
    const engine = engineOf({ random: () => random });
    return (await generate(engine, { text: "<|im_start|>x", sampling_params: params })).output_ids.join();
  };
  assert.equal(await draw(0.1, { sampling_seed: 5 }), await draw(0.9, { sampling_seed: 5 }));
  assert.notEqual(await draw(0.1, { sampling_seed: 5 }), await draw(0.1, { sampling_seed: 6 }));
  assert.notEqual(await draw(0.1, { max_new_tokens: 9 }), await draw(0.7, { max_new_tokens: 9 }));
});

Deno.test("/generate keeps the matched stop id in the ids, and min_new_tokens and ignore_eos hold stops off", async () => {
  const engine = engineOf();
  const bias = { logit_bias: { "258": 60 } };
  const stopped = await generate(engine, { input_ids: [65], return_logprob: true, sampling_params: bias });
  assert.deepEqual(stopped.output_ids, [258]);
  assert.equal(stopped.text, "");
  assert.deepEqual(stopped.meta_info.finish_reason, { type: "stop", matched: 258 });
  const late = await generate(engine, {
    input_ids: [65],
    sampling_params: { min_new_tokens: 4, logit_bias: { "258": 1e6 } },
  });
  assert.deepEqual([late.output_ids.length, late.output_ids.indexOf(258)], [5, 4]);
  const ignoring = await generate(engine, {
    input_ids: [65],
    sampling_params: { ...bias, ignore_eos: true, max_new_tokens: 5 },
  });
  assert.deepEqual(ignoring.output_ids, [258, 258, 258, 258, 258]);
  assert.deepEqual(ignoring.meta_info.finish_reason, { type: "length", length: 5 });
});

Deno.test("/generate refuses lengths with SGLang's messages and fills what there is where no limit is set", async () => {
  const engine = engineOf({ maxContextTokens: 10, kvPoolTokens: 8 });
  const prompt = (length: number): number[] => new Array<number>(length).fill(65);
  assert.deepEqual(await refused(engine, { input_ids: prompt(10) }), {
    status: 400,
    body: { error: { message: "The input (10 tokens) is longer than the model's context length (10 tokens)." } },
  });
  assert.deepEqual(await refused(engine, { input_ids: prompt(6), sampling_params: { max_new_tokens: 5 } }), {
    status: 400,
    body: {
      error: {
        message: "Requested token count exceeds the model's maximum context length of 10 tokens. You requested a " +
          "total of 11 tokens: 6 tokens from the input messages and 5 tokens for the completion. Please reduce the " +
          "number of tokens in the input messages or the completion to fit within the limit.",
      },
    },
  });
  assert.deepEqual(await refused(engine, { input_ids: prompt(8), sampling_params: { max_new_tokens: 1 } }), {
    status: 400,
    body: {
      error: {
        message: "Input length (8 tokens) exceeds the maximum allowed length (7 tokens). Use a shorter input or " +
          "enable --allow-auto-truncate.",
      },
    },
  });
  const full = await generate(engine, {
    input_ids: prompt(6),
    sampling_params: { max_new_tokens: null, ignore_eos: true },
  });
  assert.deepEqual(full.meta_info.finish_reason, { type: "length", length: 2 });
});

Deno.test("/generate answers what Python would raise", async () => {
  const engine = engineOf();
  const prompt = { input_ids: [65] };
  const plain = { status: 500, body: "Internal Server Error" };
  assert.deepEqual(await refused(engine, { ...prompt, sampling_params: { bogus: 1 } }), plain);
  assert.deepEqual(await refused(engine, { input_ids: [VOCABULARY] }), plain);
  assert.deepEqual(await refused(engine, { input_ids: [-1] }), plain);
  assert.deepEqual(await refused(engine, { ...prompt, return_logprob: true, logprob_start_len: -2 }), plain);
  assert.deepEqual(await refused(engine, { input_ids: "x" }), {
    status: 400,
    body: {
      object: "error",
      message: "1 validation error: ('body', 'input_ids'): Input should be a valid list of integers, or of such lists",
      type: "Bad Request",
      param: null,
      code: 400,
    },
  });
  const notJson = await engine.app.request("/generate", { method: "POST", body: "{" });
  assert.equal(notJson.status, 400);
  const messages: readonly [Record<string, unknown>, string][] = [
    [{ text: "" }, "texts cannot be empty and tokenizer must be initialized"],
    [
      { ...prompt, token_ids_logprob: [10 ** 9], return_logprob: true },
      "token_ids_logprob contains out-of-vocabulary token id 1000000000; valid range is [0, 265).",
    ],
    [
      { ...prompt, return_logprob: true, logprob_start_len: 2 },
      "req.logprob_start_len=2 is higher than the number of input tokens len(req.origin_input_ids)=1. Please use a " +
      "smaller logprob_start_len.",
    ],
    [
      { ...prompt, sampling_params: { regex: "a+" } },
      "Failed to compile regex grammar: this engine enforces no grammar but json_schema and structural_tag",
    ],
    [
      { ...prompt, sampling_params: { json_schema: '{"type":"string","pattern":"a"}' } },
      "Failed to compile json_schema grammar: the keyword pattern is not supported",
    ],
    [{ ...prompt, sampling_params: { top_p: 0 } }, "top_p must be in (0, 1], got 0."],
  ];
  for (const [body, message] of messages) {
    assert.deepEqual(await refused(engine, body), { status: 400, body: { error: { message } } });
  }
});

Deno.test("/generate dies of an id outside the vocabulary where it is to", async () => {
  const engine = engineOf({ outOfVocabulary: "die" });
  await assert.rejects(post(engine, "/generate", { input_ids: [VOCABULARY] }));
  assert.equal(engine.death.aborted, true);
  await assert.rejects(async () => await engine.app.request("/health"));
});

Deno.test("/generate answers batches and samples as arrays, a bad item refuses all", async () => {
  const engine = engineOf();
  const batch = await (await post(engine, "/generate", {
    input_ids: [[65], [66, 67]],
    rid: "b",
    sampling_params: { max_new_tokens: 1 },
  })).json();
  assert.deepEqual(
    batch.map((reply: { meta_info: Record<string, unknown> }) => [reply.meta_info.id, reply.meta_info.prompt_tokens]),
    [
      ["b_0", 1],
      ["b_1", 2],
    ],
  );
  const samples = await (await post(engine, "/generate", {
    input_ids: [80, 81, 82],
    rid: "n",
    sampling_params: { max_new_tokens: 1, n: 3 },
  }, { method: "PUT" })).json();
  assert.equal(samples.length, 3);
  for (const sample of samples) {
    assert.equal(sample.meta_info.cached_tokens, 2);
    assert.doesNotMatch(sample.meta_info.id, /^n/);
  }
  const bad = await refused(engine, { input_ids: [[65], [66]], sampling_params: [{}, { top_k: 0 }] });
  assert.equal(bad.status, 400);
});

Deno.test("/generate counts cached tokens up to min(length - 1, logprob_start_len), by partition", async () => {
  const engine = engineOf();
  const cached = async (body: Record<string, unknown>): Promise<number | undefined> => {
    const reply = await generate(engine, { sampling_params: { max_new_tokens: 1 }, ...body });
    return reply.meta_info.cached_tokens;
  };
  const turn = new Array<number>(20).fill(65);
  assert.equal(await cached({ input_ids: turn }), 0);
  assert.equal(await cached({ input_ids: turn }), 19);
  assert.equal(await cached({ input_ids: turn, return_logprob: true, logprob_start_len: 0 }), 0);
  assert.equal(await cached({ input_ids: turn, return_logprob: true, logprob_start_len: 7 }), 7);
  assert.equal(await cached({ input_ids: turn, return_logprob: true }), 19);
  assert.equal(await cached({ input_ids: turn, extra_key: "other" }), 0);
  assert.equal(await cached({ input_ids: turn, cache_salt: "other" }), 0);
  assert.equal(await cached({ input_ids: turn, cache_salt: "" }), 19);
  assert.equal(await cached({ input_ids: [...turn.slice(0, 5), 66] }), 5);
  // Everything but the last sampled id of a turn is there for the next.
  const first = await generate(engine, {
    input_ids: [90, 91],
    sampling_params: { max_new_tokens: 6, ignore_eos: true },
  });
  assert.equal(await cached({ input_ids: [90, 91, ...first.output_ids, 70, 71] }), 7);
  assert.equal((await engine.app.request("/flush_cache", { method: "POST" })).status, 200);
  assert.equal(await cached({ input_ids: turn }), 0);
});

Deno.test("/generate in null mode says a constant reply of the given length", async () => {
  const engine = engineOf({ nullReplyTokens: 5 });
  const one = await generate(engine, { input_ids: [65, 66], return_logprob: true });
  const two = await generate(engine, { input_ids: [67], return_logprob: true });
  assert.equal(one.output_ids.length, 5);
  assert.deepEqual(one.output_ids, two.output_ids);
  assert.deepEqual(one.meta_info.finish_reason, { type: "stop", matched: 258 });
  assert.equal(one.meta_info.output_token_logprobs?.length, 5);
});
