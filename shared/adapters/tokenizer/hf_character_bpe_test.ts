import assert from "node:assert/strict";
import fc from "fast-check";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { createHfTokenizer } from "./hf_tokenizer.ts";

/** A vocabulary of SentencePiece's kind: characters, merges, bytes for everything else. */
const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
const words = ["<unk>", "<s>", "</s>", ...bytes, "▁", "a", "b", "é", "😀", "\n", "▁▁", "ab", "▁ab", "aba", "\n\n"];
const tokenizerJson = {
  added_tokens: [0, 1, 2].map((id) => ({
    id,
    content: words[id] ?? "",
    special: true,
    normalized: false,
    lstrip: false,
    rstrip: false,
    single_word: false,
  })),
  normalizer: {
    type: "Sequence",
    normalizers: [{ type: "Prepend", prepend: "▁" }, { type: "Replace", pattern: { String: " " }, content: "▁" }],
  },
  pre_tokenizer: null,
  post_processor: null,
  decoder: {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  },
  model: {
    type: "BPE",
    unk_token: "<unk>",
    fuse_unk: true,
    byte_fallback: true,
    vocab: Object.fromEntries(words.map((word, id) => [word, id])),
    merges: ["▁ ▁", "a b", "▁ ab", "ab a", "\n \n"],
  },
};
const tokenizerConfig = { tokenizer_class: "LlamaTokenizer", unk_token: "<unk>", bos_token: "<s>", eos_token: "</s>" };
const tokenizer = createHfTokenizer({ tokenizerJson, tokenizerConfig }, { worker: "none" });

Deno.test("a vocabulary over characters with byte fallback encodes as the library does", () => {
  const library = new LibraryTokenizer(tokenizerJson, tokenizerConfig);
  const unit = fc.constantFrom(" ", "a", "b", "é", "😀", "漢", "\n", "c", "▁", "</s>", "<s", "\u0000");
  fc.assert(fc.property(fc.array(unit, { maxLength: 80 }), (units) => {
    const text = units.join("");
    const ids = [...tokenizer.encode(text)];
    assert.deepEqual(ids, library.encode(text, { add_special_tokens: false }).ids);
  }));
});

Deno.test("a vocabulary over characters knows plain spans and gives text back", () => {
  const text = "ab</s> aba";
  assert.ok(tokenizer.encode(text).includes(2));
  const plain = tokenizer.encode(text, { plainSpans: [0, text.length] });
  assert.ok(!plain.includes(2));
  assert.equal(tokenizer.decode(plain), text);
  const guards = [{ ids: new Set([2]), spans: [0, 3] }];
  assert.ok(!tokenizer.encode(text, { plainSpans: [], guards }).includes(2));
});
