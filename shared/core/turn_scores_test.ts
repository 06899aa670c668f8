import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeTurnScores, encodeTurnScores, type TurnScores } from "./turn_scores.ts";

const scores: fc.Arbitrary<TurnScores> = fc.record({
  turn: fc.nat(),
  tokens: fc.nat(6),
  topK: fc.nat(4),
  wide: fc.boolean(),
}).chain(({ turn, tokens, topK, wide }) => {
  const table = { minLength: tokens * topK, maxLength: tokens * topK };
  const one = { minLength: tokens, maxLength: tokens, noNaN: true };
  return fc.record({
    turn: fc.constant(turn),
    topK: fc.constant(topK),
    logprobs: wide ? fc.float64Array(one) : fc.float32Array(one),
    topkIndices: fc.int32Array({ ...table, min: 0 }),
    topkLogprobs: fc.float32Array({ ...table, noNaN: true }),
  });
});

Deno.test("decodeTurnScores() gives back what encodeTurnScores() was given, from bytes at any place", () => {
  fc.assert(fc.property(scores, fc.nat(7), (given, offset) => {
    const bytes = encodeTurnScores(given);
    const moved = new Uint8Array(bytes.length + offset);
    moved.set(bytes, offset);
    const back = decodeTurnScores(moved.subarray(offset));
    assert.deepEqual(Float64Array.from(back.logprobs), Float64Array.from(given.logprobs));
    assert.deepEqual({ ...back, logprobs: null }, { ...given, logprobs: null });
  }));
});

Deno.test("turn scores that do not fit together are neither written nor read", () => {
  const good: TurnScores = {
    turn: 3,
    topK: 1,
    logprobs: Float32Array.of(-1, -2),
    topkIndices: Int32Array.of(1, 2),
    topkLogprobs: Float32Array.of(-1, -2),
  };
  assert.throws(() => encodeTurnScores({ ...good, topkIndices: Int32Array.of(1) }), { code: "internal" });
  const bytes = encodeTurnScores(good);
  for (const length of [0, 5, 24, bytes.length - 1]) {
    assert.throws(() => decodeTurnScores(bytes.subarray(0, length)), { code: "internal" });
  }
  assert.throws(() => decodeTurnScores(Uint8Array.of(...bytes, 0)), { code: "internal" });
  assert.throws(() => decodeTurnScores(bytes.map((byte, at) => at === 0 ? byte ^ 1 : byte)), { code: "internal" });
});
