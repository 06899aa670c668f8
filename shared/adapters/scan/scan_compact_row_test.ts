import assert from "node:assert/strict";
import fc from "fast-check";
import { CompactRowReader } from "./scan_compact_row.ts";

const VOCABULARY = 1000;

/** Reads a row that other bytes follow; null where it is left to the careful reader. */
function read(text: string, topK: number): { indices: number[]; logprobs: number[]; rest: string } | null {
  const bytes = new TextEncoder().encode(`<${text}${" ".repeat(64 * (topK + 1))}`);
  const indices = new Int32Array(topK + 1);
  const logprobs = new Float32Array(topK + 1);
  const options = { topK, vocabSize: VOCABULARY, seenInRow: new Uint32Array(VOCABULARY) };
  const end = new CompactRowReader(options).read(new DataView(bytes.buffer), 1, 1, indices, logprobs, 1);
  if (end < 0) return null;
  return {
    indices: [...indices.subarray(1)],
    logprobs: [...logprobs.subarray(1)],
    rest: new TextDecoder().decode(bytes.subarray(end)).trim(),
  };
}

/** As engines have them. */
const plain = fc.oneof(
  fc.integer({ min: -(2 ** 30), max: 0 }).map((steps) => Math.fround(steps / 2 ** 24)),
  fc.integer({ min: -(2 ** 30), max: 0 }).map((steps) => Math.fround(steps / 2 ** 44)),
);
/** As no engine has them, but as JSON may have them. */
const wild = fc.oneof(plain, fc.float({ noNaN: true }), fc.double({ noNaN: true }), fc.constantFrom(5e-324, 1e300));

function rowsOf(logprobs: fc.Arbitrary<number>): fc.Arbitrary<(number | null)[][]> {
  return fc.uniqueArray(fc.tuple(logprobs, fc.nat(VOCABULARY - 1)), { minLength: 1, selector: ([, id]) => id })
    .map((entries) => entries.sort((left, right) => right[0] - left[0]).map(([logprob, id]) => [logprob, id, null]));
}

function assertAsParsed(found: NonNullable<ReturnType<typeof read>>, text: string): void {
  const parsed: [number, number][] = JSON.parse(text);
  assert.deepEqual(found.logprobs, parsed.map(([logprob]) => Math.fround(logprob)));
  assert.deepEqual(found.indices, parsed.map(([, id]) => id));
  assert.equal(found.rest, ",");
}

Deno.test("CompactRowReader reads every row of an engine as JSON.parse and a rounding to float32 do", () => {
  fc.assert(
    fc.property(rowsOf(plain), (row) => {
      const text = JSON.stringify(row);
      const found = read(`${text},`, row.length);
      assert.ok(found !== null);
      assertAsParsed(found, text);
    }),
    { numRuns: 1000 },
  );
});

Deno.test("CompactRowReader reads any other number as JSON.parse does, or leaves it", () => {
  fc.assert(
    fc.property(rowsOf(wild), (row) => {
      const text = JSON.stringify(row);
      const found = read(`${text},`, row.length);
      if (found !== null) assertAsParsed(found, text);
    }),
    { numRuns: 1000 },
  );
});

Deno.test("CompactRowReader leaves to the careful reader whatever is not the plain form, or not right", () => {
  assert.deepEqual(read("[[-0.5,1,null],[-2e-1,2,null]]", 2), null);
  assert.deepEqual(read("[[-2e-1,1,null],[-0.5,2,null]]]", 2), {
    indices: [1, 2],
    logprobs: [Math.fround(-0.2), -0.5],
    rest: "]",
  });
  for (
    const row of [
      "[[-0.5,1,null]]",
      "[[-0.5,1,null],[-1,2,null],[-2,3,null]]",
      "[[-0.5,1,null],[-1,2,null]",
      "[[-0.5,1,null],[-1,1,null]]",
      "[[-0.5,1,null],[-1,1000,null]]",
      "[[-0.5,1,null],[-1,-2,null]]",
      "[[-0.5,1,null],[-1,2.5,null]]",
      "[[-0.5,1,null],[-1,,null]]",
      "[[-0.5,1,null],[null,2,null]]",
      "[[-0.5,1,null],[NaN,2,null]]",
      "[[-0.5,1,null],[-1e40,2,null]]",
      "[[-0.5,1,null],[-1e999,2,null]]",
      "[[-0.5,1,null],[-01,2,null]]",
      "[[-0.5,1,null],[-1.,2,null]]",
      "[[-0.5,1,null],[-.5,2,null]]",
      "[[-0.5,1,null],[-1e,2,null]]",
      "[[-0.5,1,null],[-12345678901.5,2,null]]",
      "[[-0.5,1,null],[-0.1234567890123456789012345,2,null]]",
      '[[-0.5,1,null],[-1,2,"x"]]',
      "[[-0.5,1,null],[-1,2,nil]]",
      "[[-0.5,1,null],[-1,2]]",
      "[[-0.5,1,null], [-1,2,null]]",
      "[[-0.5,1,null];[-1,2,null]]",
      "null",
      "",
    ]
  ) assert.equal(read(row, 2), null, row);
});

Deno.test("CompactRowReader reads no row whose longest form could pass the end of the bytes", () => {
  const text = "[[-0.5,1,null]]";
  const options = { topK: 1, vocabSize: 2, seenInRow: new Uint32Array(2) };
  for (const [room, end] of [[127, -1], [128, text.length]] as const) {
    const bytes = new TextEncoder().encode(text.padEnd(room));
    const reader = new CompactRowReader(options);
    assert.equal(reader.read(new DataView(bytes.buffer), 0, room, new Int32Array(1), new Float32Array(1), 0), end);
  }
});
