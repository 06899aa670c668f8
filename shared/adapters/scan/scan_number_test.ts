import assert from "node:assert/strict";
import fc from "fast-check";
import { NumberReader } from "./scan_number.ts";

const reader = new NumberReader();

function read(text: string, float32: boolean): { end: string; value: number; at: number } {
  const end = reader.read(new TextEncoder().encode(text), 0, { float32 });
  return { end, value: reader.value, at: reader.at };
}

const numberTexts = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.integer().map(String),
  fc.tuple(fc.bigInt(0n, 10n ** 30n), fc.bigInt(0n, 10n ** 30n), fc.integer({ min: -340, max: 340 }))
    .map(([whole, part, exponent]) => `-${whole}.${part}e${exponent}`),
);

Deno.test("NumberReader reads what JSON.parse reads, and its nearest float32", () => {
  fc.assert(
    fc.property(numberTexts, (text) => {
      const expected: number = JSON.parse(text);
      const double = read(`${text},`, false);
      assert.deepEqual(double, { end: "whole", value: expected, at: text.length });
      const float = read(`${text}]`, true);
      assert.ok(Object.is(Math.fround(float.value), Math.fround(expected)), text);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("NumberReader waits for the byte that ends a number", () => {
  for (const text of ["1", "-", "-1", "1.", "1.5", "1e", "1e-", "1e-5", ""]) assert.equal(read(text, true).end, "cut");
});

Deno.test("NumberReader refuses what is no JSON number", () => {
  for (const text of ["01,", "-,", ".5,", "1.,", "1e,", "NaN,", "-Infinity,", "+1,", "null,"]) {
    assert.equal(read(text, true).end, "bad", text);
  }
});
