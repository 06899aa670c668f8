import assert from "node:assert/strict";
import fc from "fast-check";
import { byteTokenizer } from "../../../tests/fixtures/byte_tokenizer.ts";
import { cutAtStop } from "./cut_at_stop.ts";

const tokenizer = byteTokenizer();
const END = 300;

function cut(text: string, stops: { stop?: string[]; stop_token_ids?: number[] }): [string, unknown] | null {
  const found = cutAtStop(tokenizer.encode(text), stops, tokenizer);
  return found === null ? null : [tokenizer.decode(found.ids), found.finish.matched];
}

Deno.test("cutAtStop ends at the token that completes a stop string, itself among them", () => {
  assert.deepEqual(cut("Look.\nObservation: none", { stop: ["Observation:"] }), [
    "Look.\nObservation:",
    "Observation:",
  ]);
  assert.deepEqual(cut("aab", { stop: ["ab"] }), ["aab", "ab"]);
  assert.deepEqual(cut("é–é–!", { stop: ["–!"] }), ["é–é–!", "–!"]);
  assert.equal(cut("Look.", { stop: ["Observation:", ""] }), null);
});

Deno.test("cutAtStop ends at the first stop, of whichever kind", () => {
  const [b] = tokenizer.encode("b");
  assert.deepEqual(cut("abc", { stop: ["c"], stop_token_ids: [b!] }), ["ab", b]);
  assert.deepEqual(cut("abc", { stop: ["a"], stop_token_ids: [b!] }), ["a", "a"]);
  assert.deepEqual(cut("abc", { stop: ["bc", "b"] }), ["ab", "b"]);
});

Deno.test("cutAtStop finds what a search in the whole text finds", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "é"), maxLength: 30 });
  const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "é"), minLength: 1, maxLength: 4 }), {
    maxLength: 3,
  });
  fc.assert(fc.property(text, stops, (said, stop) => {
    const ends = stop.map((one) => said.indexOf(one) + one.length).filter((_, k) => said.includes(stop[k]!));
    const found = cut(said, { stop, stop_token_ids: [END] });
    assert.equal(found?.[0] ?? null, ends.length === 0 ? null : said.slice(0, Math.min(...ends)));
  }));
});
