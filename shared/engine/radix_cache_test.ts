/** The cache knows exactly the prefixes it was given, and stays within its bound. */

import assert from "node:assert/strict";
import * as fc from "fast-check";
import { RadixCache } from "./radix_cache.ts";

const sequence = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 12 });

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

Deno.test("RadixCache.match is the longest common prefix with anything inserted", () => {
  fc.assert(fc.property(fc.array(sequence), sequence, (inserted, wanted) => {
    const cache = new RadixCache(Infinity);
    for (const ids of inserted) cache.insert("a", Uint32Array.from(ids));
    const expected = Math.max(0, ...inserted.map((ids) => commonPrefix(ids, wanted)));
    assert.equal(cache.match("a", Uint32Array.from(wanted)), expected);
    assert.equal(cache.match("b", Uint32Array.from(wanted)), 0);
    const prefixes = new Set(inserted.flatMap((ids) => ids.map((_, i) => ids.slice(0, i + 1).join())));
    assert.equal(cache.tokens, prefixes.size);
    cache.flush();
    assert.equal(cache.match("a", Uint32Array.from(wanted)), 0);
  }));
});

Deno.test("RadixCache stays within its capacity and drops what was used least recently", () => {
  fc.assert(fc.property(fc.array(sequence, { maxLength: 40 }), (inserted) => {
    const cache = new RadixCache(20);
    for (const ids of inserted) {
      cache.insert("a", Uint32Array.from(ids));
      assert.ok(cache.tokens <= 20);
    }
  }));
  const cache = new RadixCache(10);
  cache.insert("a", Uint32Array.of(1, 1, 1, 1));
  cache.insert("a", Uint32Array.of(2, 2, 2, 2));
  cache.match("a", Uint32Array.of(1, 1, 1, 1));
  cache.insert("a", Uint32Array.of(3, 3, 3, 3));
  assert.equal(cache.match("a", Uint32Array.of(2, 2, 2, 2)), 0);
  assert.equal(cache.match("a", Uint32Array.of(1, 1, 1, 1)), 4);
});
