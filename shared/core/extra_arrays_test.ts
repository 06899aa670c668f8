import assert from "node:assert/strict";
import * as fc from "fast-check";
import {
  decodeTopPIds,
  encodeTopPIds,
  type Experts,
  expertsWidth,
  joinExperts,
  joinTopPIds,
  type TopPIds,
} from "./extra_arrays.ts";

function experts(start: number, rows: number, width = 3): Experts {
  const values = Int32Array.from({ length: rows * width }, (_, index) => start * width + index);
  return { start, rows, bytes: new Uint8Array(values.buffer) };
}

function topPIds(lists: readonly (readonly number[])[]): TopPIds {
  const offsets = [0];
  for (const list of lists) offsets.push(offsets.at(-1)! + list.length);
  return { offsets: Int32Array.from(offsets), ids: Int32Array.from(lists.flat()) };
}

Deno.test("joinExperts puts parts that follow each other together, empty ones too", () => {
  assert.deepEqual(joinExperts([experts(2, 3), experts(5, 0), experts(5, 4)]), experts(2, 7));
  assert.deepEqual(joinExperts([experts(2, 3)]), experts(2, 3));
  assert.deepEqual(joinExperts([experts(2, 0)]), experts(2, 0));
  assert.equal(expertsWidth(experts(2, 3)), 3);
  assert.equal(expertsWidth(experts(2, 0)), 0);
});

Deno.test("joinExperts refuses holes, overlaps and another width", () => {
  assert.equal(joinExperts([experts(0, 3), experts(4, 1)]), null);
  assert.equal(joinExperts([experts(0, 3), experts(2, 1)]), null);
  assert.equal(joinExperts([experts(0, 3), experts(3, 1, 2)]), null);
  assert.equal(joinExperts([]), null);
});

Deno.test("top-p ids joined are those of all tokens in order, and come back from their bytes", () => {
  const lists = fc.array(fc.array(fc.nat({ max: 2 ** 31 - 1 }), { maxLength: 4 }), { maxLength: 5 });
  fc.assert(fc.property(fc.array(lists, { maxLength: 4 }), (parts) => {
    const joined = joinTopPIds(parts.map(topPIds));
    assert.deepEqual(joined, topPIds(parts.flat()));
    const bytes = encodeTopPIds(joined);
    const size = { tokens: parts.flat().length, ids: joined.ids.length };
    // Stores give views into larger buffers.
    const view = new Uint8Array([9, ...bytes]).subarray(1);
    assert.deepEqual(decodeTopPIds(view, size), joined);
    assert.throws(() => decodeTopPIds(bytes, { ...size, ids: size.ids + 1 }), { code: "internal" });
  }));
});
