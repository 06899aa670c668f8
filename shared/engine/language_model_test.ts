/** The model is a distribution over the whole vocabulary and a function of the prefix alone. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import { candidatePool } from "./candidate_pool.ts";
import { LanguageModel } from "./language_model.ts";
import type { NextTokenLogits } from "./next_token_logits.ts";
import { PrefixState } from "./prefix_state.ts";

const STOP = 258;

function model(tokenizer: Tokenizer, seed = 1): { model: LanguageModel; after: (ids: number[]) => NextTokenLogits } {
  const pool = candidatePool(tokenizer);
  const stopId = tokenizer.addedTokens.get("<|im_end|>")!;
  const language = new LanguageModel({ vocabSize: tokenizer.vocabSize, seed, stopId, pool });
  const marks = {
    stopIds: new Set([stopId]),
    generationPrompt: tokenizer.encode("<|im_start|>assistant\n"),
    suffixes: [],
  };
  function after(ids: number[]): NextTokenLogits {
    const state = new PrefixState(marks, { script: null, capacity: 0 });
    for (const id of ids) state.push(id);
    const logits = language.buffer();
    language.logits(state, logits);
    return logits;
  }
  return { model: language, after };
}

function totalOf(logits: NextTokenLogits): number {
  let total = 0;
  for (let id = 0; id < logits.vocabSize; id++) total += Math.exp(logits.logprob(id));
  return total;
}

Deno.test("LanguageModel's probabilities sum to one over a small vocabulary at any temperature", () => {
  const { after } = model(byteTokenizer());
  const ids = fc.array(fc.integer({ min: 0, max: 264 }), { maxLength: 60 });
  fc.assert(fc.property(ids, fc.double({ min: 0.05, max: 8, noNaN: true }), (prefix, temperature) => {
    const logits = after(prefix);
    logits.normalize(temperature);
    assert.ok(Math.abs(totalOf(logits) - 1) < 1e-12);
  }));
});

Deno.test("LanguageModel's closed form sums to one over Qwen3's vocabulary", async () => {
  const { after } = model(await qwen3Tokenizer());
  for (const temperature of [0.3, 1, 3]) {
    const logits = after([151644, 872, 198]);
    logits.normalize(temperature);
    assert.ok(Math.abs(totalOf(logits) - 1) < 1e-9);
    for (const id of [0, 1, logits.vocabSize - 1]) assert.ok(Number.isFinite(logits.logprob(id)));
  }
});

Deno.test("LanguageModel is a function of the prefix, and another model for another seed", () => {
  const prefix = [...byteTokenizer().encode("<|im_start|>user\nhow are you")];
  const distribution = (seed: number): number[] => {
    const logits = model(byteTokenizer(), seed).after(prefix);
    logits.normalize(1);
    return Array.from({ length: logits.vocabSize }, (_, id) => logits.logprob(id));
  };
  assert.deepEqual(distribution(1), distribution(1));
  assert.notDeepEqual(distribution(1), distribution(2));
});

Deno.test("LanguageModel ends turns by a hazard that grows with the turn's length", () => {
  const { after } = model(byteTokenizer());
  const hazard = (length: number): number => {
    const logits = after([257, ...new Array<number>(length).fill(97)]);
    logits.normalize(1);
    return Math.exp(logits.logprob(STOP));
  };
  assert.ok(hazard(0) < 0.02);
  assert.ok(hazard(20) > hazard(0));
  assert.ok(hazard(60) > 0.04 && hazard(60) < 0.5);
});
