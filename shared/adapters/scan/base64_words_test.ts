import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { Base64Words } from "./base64_words.ts";

/** All words of a text that comes in pieces; null where it is none. */
function read(text: string, cuts: readonly number[] = []): number[] | null {
  const bytes = new TextEncoder().encode(text);
  const reader = new Base64Words();
  const words: number[] = [];
  let from = 0;
  for (const to of [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((left, right) => left - right)) {
    const view = reader.push(bytes.slice(from, to));
    if (view === null) return null;
    for (let at = 0; at < view.byteLength; at += 4) words.push(view.getInt32(at, true));
    from = to;
  }
  return reader.isWhole() ? words : null;
}

Deno.test("Base64Words reads the words that were encoded, in any pieces", () => {
  fc.assert(
    fc.property(fc.int32Array({ maxLength: 40 }), fc.array(fc.nat(), { maxLength: 20 }), (words, cuts) => {
      const text = Buffer.from(words.buffer, words.byteOffset, words.byteLength).toString("base64");
      assert.deepEqual(read(text, cuts), [...words]);
    }),
    { numRuns: 500 },
  );
});

Deno.test("Base64Words refuses what is no base64 of whole words, however it is cut", () => {
  assert.deepEqual(read("AAAAAA=="), [0]);
  for (
    const text of [
      "AAAAAA=",
      "AAAAAA",
      "AAAAAA==AAAA",
      "AAAAAA==AAAAAA==",
      "A===",
      "=AAA",
      "AAAAA=A=",
      "AAAAAAA=",
      "AAAA",
      "AAAA AA==",
      "AAAAAA-_",
      'AA\\"A',
    ]
  ) {
    for (let cut = 0; cut <= text.length; cut++) assert.equal(read(text, [cut]), null, `${text} at ${cut}`);
  }
});
