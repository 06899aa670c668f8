import assert from "node:assert/strict";
import fc from "fast-check";
import { equalKeys, hashKey } from "./hash_key.ts";

Deno.test("hashKey is SHA-256 of the key's UTF-8, in hex", () => {
  assert.equal(hashKey(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert.equal(hashKey("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(hashKey("é"), "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c");
});

Deno.test("equalKeys holds of equal keys alone, whatever their lengths", () => {
  const key = fc.string({ unit: "binary" });
  fc.assert(fc.property(key, key, (a, b) => {
    assert.ok(equalKeys(a, a));
    assert.equal(equalKeys(a, b), a === b);
    assert.equal(equalKeys(a, `${a}x`), false);
  }));
});
