/** Samples follow the distribution, and the limits keep what SGLang keeps. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { mix, unit53 } from "./hashing.ts";
import { NextTokenLogits, TAIL_CLASSES } from "./next_token_logits.ts";
import { sampleToken, type SamplingLimits } from "./sampler.ts";

const levels = Float64Array.from({ length: TAIL_CLASSES }, (_, tailClass) => -1 - tailClass / 2);
const ALL: SamplingLimits = { topP: 1, topK: Infinity, minP: 0 };

function example(temperature: number): NextTokenLogits {
  const logits = new NextTokenLogits(40, levels);
  logits.reset(3);
  for (const [id, logit] of [[7, 2], [8, 1], [31, 1], [0, -Infinity], [15, 0.5]] as const) logits.set(id, logit);
  logits.normalize(temperature);
  return logits;
}

/** The kept ids by the definition, one id at a time. */
function kept(logits: NextTokenLogits, limits: SamplingLimits): Set<number> {
  const ids = Array.from({ length: logits.vocabSize }, (_, id) => id)
    .sort((a, b) => logits.get(b) - logits.get(a) || a - b);
  const found = new Set<number>();
  let before = 0;
  for (const [rank, id] of ids.entries()) {
    const probability = Math.exp(logits.logprob(id));
    const likely = probability >= limits.minP * Math.exp(logits.logprob(ids[0]!));
    if (rank < limits.topK && before <= limits.topP && likely && probability > 0) found.add(id);
    before += probability;
  }
  return found;
}

Deno.test("sampleToken draws ids as often as they are likely", () => {
  const draws = 40_000;
  for (const temperature of [0.5, 1, 2]) {
    const logits = example(temperature);
    const counts = new Array<number>(logits.vocabSize).fill(0);
    for (let draw = 0; draw < draws; draw++) {
      counts[sampleToken(logits, unit53(mix(draw, 1), mix(draw, 2)), ALL)]!++;
    }
    for (const [id, count] of counts.entries()) {
      const expected = draws * Math.exp(logits.logprob(id));
      assert.ok(Math.abs(count - expected) <= 5 * Math.sqrt(expected) + 1, `id ${id}: ${count}, expected ${expected}`);
    }
  }
});

Deno.test("sampleToken keeps exactly what top-k, top-p and min-p keep", () => {
  const limits = fc.record({
    topP: fc.oneof(fc.constant(1), fc.double({ min: 0.01, max: 0.99, noNaN: true })),
    topK: fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 45 })),
    minP: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true })),
  });
  const logits = example(1);
  fc.assert(fc.property(limits, (limit) => {
    const drawn = new Set<number>();
    for (let step = 0; step < 2000; step++) drawn.add(sampleToken(logits, step / 2000, limit));
    drawn.add(sampleToken(logits, 1 - 2 ** -53, limit));
    const expected = kept(logits, limit);
    for (const id of drawn) assert.ok(expected.has(id), `${id} was drawn and is not kept`);
    // A kept id of a mass above the grid's step must have been met.
    const mass = [...expected].reduce((sum, id) => sum + Math.exp(logits.logprob(id)), 0);
    for (const id of expected) if (Math.exp(logits.logprob(id)) / mass > 1 / 1000) assert.ok(drawn.has(id));
  }));
});

Deno.test("sampleToken with top-k 1 takes the likeliest, the lower id among equals", () => {
  const logits = example(1);
  assert.equal(sampleToken(logits, 0.999, { topP: 1, topK: 1, minP: 0 }), 7);
  logits.set(7, 1);
  logits.normalize(1);
  assert.equal(sampleToken(logits, 0.999, { topP: 1, topK: 1, minP: 0 }), 7);
});
