import assert from "node:assert/strict";
import fc from "fast-check";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { VerbatimError } from "../core/errors.ts";
import { qwen3Tokenizer, qwen3TokenizerFiles } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { isObject } from "./hf_files.ts";

const tokenizer = await qwen3Tokenizer();

async function library(): Promise<LibraryTokenizer> {
  const { tokenizerJson, tokenizerConfig } = await qwen3TokenizerFiles();
  assert.ok(isObject(tokenizerJson) && isObject(tokenizerConfig));
  return new LibraryTokenizer(tokenizerJson, tokenizerConfig);
}

const anyIds = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.nat(tokenizer.vocabSize - 1) },
    // Single bytes, so that characters are cut and put together.
    { weight: 3, arbitrary: fc.nat(255) },
    { weight: 1, arbitrary: fc.integer({ min: 151643, max: 151668 }) },
  ),
  { maxLength: 60 },
);

Deno.test("decode equals the library's decode for any ids", async () => {
  const oracle = await library();
  fc.assert(
    fc.property(anyIds, fc.boolean(), (ids, skipSpecialTokens) => {
      const wanted = ids.length === 0
        ? ""
        : oracle.decode(ids, { skip_special_tokens: skipSpecialTokens, clean_up_tokenization_spaces: false });
      assert.equal(tokenizer.decode(ids, { skipSpecialTokens }), wanted);
    }),
    { numRuns: 500 },
  );
});

Deno.test("decoder's joined pieces equal the whole decode", () => {
  fc.assert(
    fc.property(anyIds, (ids) => {
      const decoder = tokenizer.decoder();
      let text = "";
      for (const id of ids) {
        const piece = decoder.push(id);
        text += piece;
      }
      assert.equal(text + decoder.finish(), tokenizer.decode(ids));
    }),
    { numRuns: 1000 },
  );
});

Deno.test("decode refuses an id that is out of range", () => {
  for (const id of [-1, tokenizer.vocabSize, 1.5, NaN]) {
    assert.throws(
      () => tokenizer.decode([1, id]),
      (error) => error instanceof VerbatimError && error.code === "token_out_of_range",
    );
    assert.throws(() => tokenizer.decoder().push(id), VerbatimError);
  }
});
