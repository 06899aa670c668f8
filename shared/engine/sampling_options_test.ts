/** Every rule of `sampling_params`, with SGLang's words. */

import assert from "node:assert/strict";
import { samplingOptions } from "./sampling_options.ts";

const VOCABULARY = 100;

const VALUE_ERRORS: readonly [Record<string, unknown>, string][] = [
  [{ temperature: -1 }, "temperature must be a non-negative finite number, got -1."],
  [{ top_p: 0 }, "top_p must be in (0, 1], got 0."],
  [{ top_p: 1.5 }, "top_p must be in (0, 1], got 1.5."],
  [{ min_p: 2 }, "min_p must be in [0, 1], got 2."],
  [{ top_k: 0 }, "top_k must be -1 (disable) or at least 1, got 0."],
  [{ top_k: -2 }, "top_k must be -1 (disable) or at least 1, got -2."],
  [{ frequency_penalty: 3 }, "frequency_penalty must be in [-2, 2], got 3."],
  [{ presence_penalty: -3 }, "presence_penalty must be in [-2, 2], got -3."],
  [{ repetition_penalty: 0 }, "repetition_penalty must be in (0, 2] (1.0 = no penalty), got 0."],
  [{ max_new_tokens: -1 }, "max_new_tokens must be at least 0, got -1."],
  [{ min_new_tokens: -1 }, "min_new_tokens must be in [0, max_new_tokens], got -1."],
  [{ min_new_tokens: 5, max_new_tokens: 4 }, "min_new_tokens must be in [0, max_new_tokens(4)], got 5."],
  [{ logit_bias: { "100": 1 } }, "logit_bias must has keys in [0, 99], got 100."],
  [{ logit_bias: { a: 1 } }, "invalid literal for int() with base 10: 'a'"],
  [
    { regex: "a", structural_tag: "b" },
    "Only one of json_schema, regex, ebnf, or structural_tag can be set.",
  ],
];

const TYPE_ERRORS: readonly Record<string, unknown>[] = [
  { max_tokens: 5 },
  { temperature: "hot" },
  { max_new_tokens: 1.5 },
  { stop: 5 },
  { stop: [5] },
  { stop_token_ids: "x" },
  { stop_token_ids: [1.5] },
  { stop_regex: "(" },
  { logit_bias: [] },
  { logit_bias: { "1": "x" } },
  { json_schema: {} },
];

Deno.test("samplingOptions refuses a value out of range with SGLang's message", () => {
  for (const [params, message] of VALUE_ERRORS) {
    assert.throws(() => samplingOptions(params, VOCABULARY), { kind: "value", message });
  }
});

Deno.test("samplingOptions takes an unknown name or a wrong type for Python's TypeError", () => {
  for (const params of TYPE_ERRORS) {
    assert.throws(() => samplingOptions(params, VOCABULARY), { kind: "type" }, JSON.stringify(params));
  }
});

Deno.test("samplingOptions has SGLang's defaults, also for null", () => {
  const names = ["stop", "stop_token_ids", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "n"];
  const nulls = Object.fromEntries(names.map((name) => [name, null]));
  for (const params of [{}, nulls]) {
    const options = samplingOptions(params, VOCABULARY);
    assert.equal(options.maxNewTokens, 128);
    assert.deepEqual([options.temperature, options.topP, options.topK, options.minP], [1, 1, Infinity, 0]);
    assert.deepEqual([options.skipSpecialTokens, options.ignoreEos, options.noStopTrim], [true, false, false]);
    assert.equal(options.grammar, null);
  }
  assert.equal(samplingOptions({ max_new_tokens: null }, VOCABULARY).maxNewTokens, null);
});

Deno.test("samplingOptions turns a vanishing temperature into greedy, nulls among stop ids into nothing", () => {
  const greedy = samplingOptions({ temperature: 0, stop_token_ids: [3, null, 4], json_schema: "" }, VOCABULARY);
  assert.deepEqual([greedy.temperature, greedy.topK, [...greedy.stopTokenIds], greedy.grammar], [1, 1, [3, 4], null]);
  assert.equal(samplingOptions({ top_k: -1, temperature: 0.5 }, VOCABULARY).topK, Infinity);
});
