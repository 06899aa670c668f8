/** Closed forms over a vocabulary equal sums over its ids. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { NextTokenLogits, TAIL_CLASSES } from "./next_token_logits.ts";

const levels = Float64Array.from({ length: TAIL_CLASSES }, (_, tailClass) => -3 - tailClass / 2);

const cases = fc.record({
  vocabSize: fc.integer({ min: 1, max: 90 }),
  shift: fc.nat(),
  temperature: fc.constantFrom(0.1, 0.7, 1, 2, 9),
  own: fc.array(fc.tuple(fc.nat(), fc.oneof(fc.double({ min: -9, max: 9, noNaN: true }), fc.constant(-Infinity)))),
});

function fill(options: { vocabSize: number; shift: number; own: [number, number][] }): NextTokenLogits {
  const logits = new NextTokenLogits(options.vocabSize, levels);
  logits.reset(options.shift);
  for (const [id, logit] of options.own) logits.set(id % options.vocabSize, logit);
  return logits;
}

Deno.test("NextTokenLogits.logprob is log softmax over the whole vocabulary", () => {
  fc.assert(fc.property(cases, (options) => {
    const logits = fill(options);
    const ids = Array.from({ length: options.vocabSize }, (_, id) => id);
    const values = ids.map((id) => logits.get(id));
    fc.pre(values.some((value) => value > -Infinity));
    logits.normalize(options.temperature);
    const max = Math.max(...values);
    const total = values.reduce((sum, value) => sum + Math.exp((value - max) / options.temperature), 0);
    for (const id of ids) {
      const expected = (values[id]! - max) / options.temperature - Math.log(total);
      const logprob = logits.logprob(id);
      assert.ok(expected === logprob || Math.abs(expected - logprob) < 1e-9, `${expected} and ${logprob}`);
    }
  }));
});

Deno.test("NextTokenLogits.runs hold every id once, the likeliest first, equals by id", () => {
  fc.assert(fc.property(cases, (options) => {
    const logits = fill(options);
    const ranked: number[] = [];
    for (const run of logits.runs()) {
      for (let i = 0; i < run.count; i++) {
        const id = run.id ?? logits.tailId(run.tailClass, i);
        assert.equal(logits.get(id), run.logit);
        ranked.push(id);
      }
    }
    assert.deepEqual(ranked.toSorted((a, b) => a - b), Array.from({ length: options.vocabSize }, (_, id) => id));
    for (const [i, id] of ranked.entries()) {
      if (i > 0) assert.ok(logits.get(ranked[i - 1]!) >= logits.get(id));
    }
  }));
});
