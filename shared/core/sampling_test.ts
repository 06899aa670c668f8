import assert from "node:assert/strict";
import {
  afterTokens,
  type Basis,
  basisOf,
  carriesState,
  isConstrained,
  isRaw,
  type SamplingParams,
} from "./sampling.ts";

const RAW: Basis = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, penalties: false, constrained: false };

Deno.test("basisOf of nothing is the raw basis: the engine's defaults", () => {
  assert.deepEqual(basisOf({}), RAW);
  assert.ok(isRaw(basisOf({})));
});

Deno.test("basisOf repeats what truncates sampling, which leaves logprobs raw", () => {
  const basis = basisOf({ top_p: 0.9, top_k: 40, min_p: 0.05 });
  assert.deepEqual(basis, { ...RAW, top_p: 0.9, top_k: 40, min_p: 0.05 });
  assert.ok(isRaw(basis));
});

Deno.test("basisOf tells everything that changes logits before sampling", () => {
  const changes: SamplingParams[] = [
    { frequency_penalty: 0.1 },
    { presence_penalty: -0.1 },
    { repetition_penalty: 1.01 },
    { logit_bias: { "5": 0 } },
    { min_new_tokens: 1 },
  ];
  for (const params of changes) {
    assert.deepEqual(basisOf(params), { ...RAW, penalties: true }, JSON.stringify(params));
    assert.equal(isRaw(basisOf(params)), false);
  }
});

Deno.test("basisOf takes neutral values for none", () => {
  const neutral: SamplingParams = {
    frequency_penalty: 0,
    presence_penalty: 0,
    repetition_penalty: 1,
    logit_bias: {},
    min_new_tokens: 0,
    max_new_tokens: 5,
    stop: ["x"],
    stop_token_ids: [1],
    stop_regex: ["x"],
    ignore_eos: true,
    sampling_seed: 7,
    json_schema: "",
  };
  assert.deepEqual(basisOf(neutral), RAW);
});

Deno.test("isConstrained holds of each grammar", () => {
  for (const name of ["json_schema", "regex", "ebnf", "structural_tag"] as const) {
    assert.ok(isConstrained({ [name]: "x" }), name);
    assert.equal(isConstrained({ [name]: "" }), false, name);
    assert.equal(isRaw(basisOf({ [name]: "x" })), false);
  }
  assert.equal(isConstrained({}), false);
});

Deno.test("isRaw holds at temperature 1 alone", () => {
  for (const temperature of [0, 0.99, 1.01, 2]) assert.equal(isRaw(basisOf({ temperature })), false);
});

Deno.test("carriesState is of what remembers more than the tokens", () => {
  const stateless: SamplingParams[] = [
    {},
    { temperature: 0, top_p: 0.5, top_k: 3, min_p: 0.1, logit_bias: { "1": 2 }, sampling_seed: 7 },
    { frequency_penalty: 0, presence_penalty: 0, repetition_penalty: 1, stop_regex: [], custom_params: {} },
    { stop: ["x"], stop_token_ids: [1], ignore_eos: true, min_new_tokens: 3, json_schema: "" },
  ];
  for (const params of stateless) assert.equal(carriesState(params), false, JSON.stringify(params));
  const stateful: SamplingParams[] = [
    { json_schema: "{}" },
    { regex: "a" },
    { ebnf: "root ::= x" },
    { structural_tag: "{}" },
    { frequency_penalty: -1 },
    { presence_penalty: 0.1 },
    { repetition_penalty: 0.9 },
    { stop_regex: ["x"] },
    { custom_params: { a: null } },
  ];
  for (const params of stateful) assert.equal(carriesState(params), true, JSON.stringify(params));
});

Deno.test("afterTokens asks for what is left, and leaves the rest as it is", () => {
  assert.deepEqual(afterTokens({ max_new_tokens: 9, min_new_tokens: 5, top_p: 0.5 }, 3), {
    max_new_tokens: 6,
    min_new_tokens: 2,
    top_p: 0.5,
  });
  assert.deepEqual(afterTokens({ max_new_tokens: 9, min_new_tokens: 1 }, 3), { max_new_tokens: 6, min_new_tokens: 0 });
  assert.deepEqual(afterTokens({ max_new_tokens: 9 }, 3), { max_new_tokens: 6 });
});
