import assert from "node:assert/strict";
import fc from "fast-check";
import { k3, k3PerToken, reduceK3 } from "./k3.ts";

/** exp(r) - r - 1 to 40 digits, worked out by its series in exact rational arithmetic of big integers. */
function reference(ratio: number): number {
  const scale = 10n ** 60n;
  const r = BigInt(Math.round(ratio * 2 ** 40)) * scale / 2n ** 40n;
  let term = scale;
  let sum = 0n;
  for (let n = 1n; n < 400n; n++) {
    term = term * r / scale / n;
    if (n >= 2n) sum += term;
  }
  return Number(sum) / Number(scale);
}

Deno.test("k3() equals exp(r) - r - 1 to nine digits", () => {
  const ratios = fc.integer({ min: -(20 * 2 ** 20), max: 20 * 2 ** 20 }).map((steps) => steps / 2 ** 20);
  fc.assert(fc.property(ratios, (ratio) => {
    const expected = reference(ratio);
    assert.ok(
      Math.abs(k3(ratio, 0) - expected) <= 1e-9 * Math.max(1, expected),
      `${ratio}: ${k3(ratio, 0)}, ${expected}`,
    );
  }));
});

Deno.test("k3() keeps its digits where teacher and student nearly agree", () => {
  for (const ratio of [1e-3, 1e-5, -1e-5, 1e-8, -1e-8]) {
    const expected = ratio * ratio / 2 + ratio ** 3 / 6 + ratio ** 4 / 24;
    assert.ok(Math.abs(k3(-1 + ratio, -1) - expected) <= 1e-9 * expected + 1e-20);
  }
  assert.equal(k3(-3.5, -3.5), 0);
});

Deno.test("k3() is finite and never negative for any finite logprobs", () => {
  const logprob = fc.double({ min: -1e300, max: 0, noNaN: true });
  fc.assert(fc.property(logprob, logprob, (teacher, student) => {
    const value = k3(teacher, student);
    assert.ok(Number.isFinite(value) && value >= 0, String(value));
  }));
});

Deno.test("k3() bounds the difference by clip, on both sides", () => {
  assert.equal(k3(50, 0, { clip: 2 }), k3(2, 0));
  assert.equal(k3(0, 50, { clip: 2 }), k3(-2, 0));
  assert.equal(k3(-1, -2, { clip: 5 }), k3(-1, -2));
});

Deno.test("reduceK3() takes the positions whose mask is 1", () => {
  const values = k3PerToken({ teacher: [-1, -2, -3], student: [-1.5, -9, -2], mask: [1, 0, 1] });
  assert.equal(values[1], null);
  const sum = k3(-1, -1.5) + k3(-3, -2);
  assert.ok(Math.abs(reduceK3(values, "sum")! - sum) < 1e-15);
  assert.ok(Math.abs(reduceK3(values, "mean")! - sum / 2) < 1e-15);
  assert.equal(reduceK3(values, "none"), null);
  assert.equal(reduceK3([null], "mean"), null);
  assert.equal(reduceK3([], "sum"), 0);
});
