import assert from "node:assert/strict";
import fc from "fast-check";
import { VerbatimError } from "./errors.ts";
import type { TurnDetail } from "./turn.ts";
import { decodeTurnBulk, encodeTurnBulk, packLogprobs } from "./turn_codec.ts";

const ids = fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { maxLength: 40 });
const double = fc.double({ noNaN: true });
const float = fc.float({ noNaN: true });

function detailOf(value: unknown): TurnDetail {
  return JSON.parse(JSON.stringify({ history: value, reply: { content: "\ud800 \u{1f600}" } }));
}

function bitsOf(values: ArrayLike<number>): BigUint64Array {
  return new BigUint64Array(Float64Array.from(values).buffer);
}

Deno.test("packLogprobs keeps every bit, and uses float32 only where it can", () => {
  fc.assert(fc.property(fc.oneof(fc.array(double), fc.array(float), fc.array(fc.oneof(float, double))), (values) => {
    const packed = packLogprobs(values);
    assert.deepEqual(bitsOf(packed), bitsOf(values));
    assert.equal(packed instanceof Float32Array, values.every((value) => Math.fround(value) === value));
    assert.deepEqual(packLogprobs(Float64Array.from(values)), packed);
  }));
});

Deno.test("packLogprobs knows the edges of float32", () => {
  for (const value of [0, -0, -1.401298464324817e-45, -3.4028234663852886e38, -Infinity, -0.5]) {
    assert.ok(packLogprobs([value]) instanceof Float32Array);
    assert.ok(Object.is(packLogprobs([value])[0], value));
  }
  for (const value of [-0.1, -Number.MIN_VALUE, -Number.MAX_VALUE, -16777217, -1e-46, 1 + Number.EPSILON]) {
    assert.ok(packLogprobs([-0.5, value]) instanceof Float64Array);
    assert.equal(packLogprobs([value])[0], value);
  }
  const narrow = Float32Array.of(-0.1);
  assert.equal(packLogprobs(narrow), narrow);
  assert.ok(packLogprobs([]) instanceof Float32Array);
});

Deno.test("decodeTurnBulk gives back what encodeTurnBulk was given", () => {
  const tokens = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.oneof(float, double)), {
    maxLength: 40,
  });
  fc.assert(fc.property(ids, tokens, fc.jsonValue(), (observation, sampled, value) => {
    const bulk = {
      observation: Uint32Array.from(observation),
      completion: Uint32Array.from(sampled, ([id]) => id),
      logprobs: packLogprobs(sampled.map(([, logprob]) => logprob)),
      detail: detailOf(value),
    };
    const decoded = decodeTurnBulk(encodeTurnBulk(bulk));
    assert.deepEqual(decoded, bulk);
    assert.deepEqual(bitsOf(decoded.logprobs), bitsOf(bulk.logprobs));
  }));
});

Deno.test("encodeTurnBulk packs views of a larger buffer as what they show", () => {
  const shared = Uint32Array.of(9, 1, 2, 9);
  const bulk = {
    observation: shared.subarray(1, 2),
    completion: shared.subarray(1, 3),
    logprobs: Float64Array.of(-9, -0.1, -0.2, -9).subarray(1, 3),
    detail: detailOf({}),
  };
  const decoded = decodeTurnBulk(encodeTurnBulk(bulk).subarray());
  assert.deepEqual(decoded.observation, Uint32Array.of(1));
  assert.deepEqual(decoded.completion, Uint32Array.of(1, 2));
  assert.deepEqual(decoded.logprobs, Float64Array.of(-0.1, -0.2));
  shared.fill(0);
  assert.deepEqual(decoded.completion, Uint32Array.of(1, 2));
});

Deno.test("encodeTurnBulk refuses arrays of different lengths", () => {
  const bulk = { observation: new Uint32Array(0), completion: new Uint32Array(2), detail: detailOf({}) };
  for (const logprobs of [new Float32Array(1), new Float64Array(3)]) {
    assert.throws(() => encodeTurnBulk({ ...bulk, logprobs }), { code: "internal" });
  }
});

Deno.test("decodeTurnBulk refuses bytes that are cut, longer or not its own", () => {
  const bytes = encodeTurnBulk({
    observation: Uint32Array.of(1, 2, 3),
    completion: Uint32Array.of(4, 5),
    logprobs: Float32Array.of(-1, -2),
    detail: detailOf({ a: 1 }),
  });
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => decodeTurnBulk(bytes.subarray(0, length)), VerbatimError);
  }
  const longer = new Uint8Array(bytes.length + 1);
  longer.set(bytes);
  assert.throws(() => decodeTurnBulk(longer), { code: "internal" });
  // Any header byte: the mark, a width, a length, what is kept for later.
  for (let index = 0; index < 24; index++) {
    assert.throws(() => decodeTurnBulk(bytes.with(index, bytes[index]! ^ 0x41)), { code: "internal" });
  }
  assert.throws(() => decodeTurnBulk(bytes.with(bytes.length - 1, 0xff)), { code: "internal" });
});
