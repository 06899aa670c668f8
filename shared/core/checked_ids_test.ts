import assert from "node:assert/strict";
import fc from "fast-check";
import { checkedIds } from "./checked_ids.ts";
import { VerbatimError } from "./errors.ts";

Deno.test("checkedIds gives ids of the vocabulary back as they are", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 2 ** 32 }), fc.array(fc.nat(0xffffffff)), (vocabSize, any) => {
    const ids = any.map((id) => id % vocabSize);
    assert.deepEqual([...checkedIds(ids, vocabSize, "input_ids")], ids);
  }));
});

Deno.test("checkedIds names the first id that is none, and where it stands", () => {
  const bad = fc.constantFrom(-1, 100, 101, 0.5, NaN, Infinity, -Infinity, 2 ** 32, 2 ** 53);
  fc.assert(fc.property(fc.array(fc.nat(99)), bad, fc.array(fc.integer()), (before, id, after) => {
    assert.throws(() => checkedIds([...before, id, ...after], 100, "tokens"), (thrown) => {
      assert.ok(thrown instanceof VerbatimError);
      assert.equal(thrown.code, "token_out_of_range");
      assert.deepEqual(thrown.details, { field: `tokens.${before.length}`, id, vocab_size: 100 });
      assert.match(thrown.message, /outside \[0, 100\)/);
      return true;
    });
  }));
});
