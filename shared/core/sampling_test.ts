import assert from "node:assert/strict";
import { type Basis, basisOf, isConstrained, isRaw, type SamplingParams } from "./sampling.ts";

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
