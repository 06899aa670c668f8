import assert from "node:assert/strict";
import fc from "fast-check";
import {
  encryptedContent,
  itemId,
  type ItemName,
  readEncryptedContent,
  readItemId,
  readResponseId,
  responseId,
} from "./response_ids.ts";

const digits = fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 24, maxLength: 24 });
const name: fc.Arbitrary<ItemName> = fc.record({
  answerId: digits,
  kind: fc.constantFrom("reasoning", "message", "function_call"),
  index: fc.nat(999_999),
}, { noNullPrototype: true });

Deno.test("readItemId and readResponseId read what itemId and responseId write", () => {
  fc.assert(fc.property(name, (item) => {
    assert.deepEqual(readItemId(itemId(item)), item);
    assert.equal(readResponseId(responseId(item.answerId)), item.answerId);
    assert.equal(readResponseId(itemId(item)), null);
    assert.equal(readItemId(responseId(item.answerId)), null);
  }));
});

Deno.test("itemId gives no two items one id", () => {
  fc.assert(fc.property(name, name, (one, other) => {
    const same = one.answerId === other.answerId && one.kind === other.kind && one.index === other.index;
    assert.equal(itemId(one) === itemId(other), same);
  }));
});

Deno.test("readItemId and readResponseId know no other ids", () => {
  for (
    const id of ["", "rs_1", "msg_", "resp_1", "fc_00", "call_0123456789abcdef01234567", "rs_0123456789ABCDEF01234567"]
  ) {
    assert.equal(readItemId(id), null, id);
    assert.equal(readResponseId(id), null, id);
  }
});

Deno.test("readEncryptedContent reads what encryptedContent writes, and nothing else", () => {
  fc.assert(fc.property(name, (item) => {
    assert.equal(readEncryptedContent(encryptedContent(itemId(item))), itemId(item));
  }));
  for (const foreign of ["", "gAAAAAB...", "Zm9yZWlnbg==", "ünicode", "%%%"]) {
    assert.equal(readEncryptedContent(foreign), null);
  }
});
