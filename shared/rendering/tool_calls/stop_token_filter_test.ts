import assert from "node:assert/strict";
import { StopTokenFilter } from "./stop_token_filter.ts";

function run(pieces: readonly string[]): string {
  const filter = new StopTokenFilter(["<|im_end|>", "</s>"]);
  return pieces.map((piece) => filter.push(piece)).join("") + filter.finish().text;
}

Deno.test("StopTokenFilter takes one stop token off the very end, however the text is cut", () => {
  for (const text of ["a<|im_end|>", "a</s>"]) {
    assert.equal(run([text]), "a");
    assert.equal(run(text.split("")), "a");
  }
  assert.equal(run(["a</s>".repeat(2)]), "a</s>a");
});

Deno.test("StopTokenFilter leaves a stop token alone that text follows, and a part of one", () => {
  for (const text of ["a<|im_end|> b", "a<|im_en", "a<<|im_end|", "a</s>\n"]) {
    assert.equal(run([text]), text);
    assert.equal(run(text.split("")), text);
  }
});

Deno.test("StopTokenFilter holds back only what may be a stop token", () => {
  const filter = new StopTokenFilter(["</s>"]);
  assert.equal(filter.push("a <b </"), "a <b ");
  assert.equal(filter.push("s>"), "");
  assert.deepEqual(filter.finish(), { text: "", stopToken: "</s>" });
});
