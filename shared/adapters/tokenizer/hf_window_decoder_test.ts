import assert from "node:assert/strict";
import fc from "fast-check";
import { createHfTokenizer } from "./hf_tokenizer.ts";

const BYTES = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
const PIECES = ["<s>", ...BYTES, "▁", "▁Hello", "a", "▁▁", "é", "漢", "😀", "\ufffd", "ing"];

/** A vocabulary in SentencePiece's manner. */
function tokenizerWith(decoder: object) {
  return createHfTokenizer({
    tokenizerJson: {
      decoder,
      added_tokens: [{ id: 0, content: "<s>", special: true, normalized: false }],
      model: {
        type: "BPE",
        byte_fallback: true,
        vocab: Object.fromEntries(PIECES.map((piece, id) => [piece, id])),
        merges: [],
      },
    },
    tokenizerConfig: {},
  }, { worker: "none" });
}

const space = { type: "Replace", pattern: { String: "▁" }, content: " " };
const decoders = {
  "SentencePiece": {
    type: "Sequence",
    decoders: [space, { type: "ByteFallback" }, { type: "Fuse" }, { type: "Strip", content: " ", start: 1, stop: 0 }],
  },
  "SentencePiece that keeps its first space": {
    type: "Sequence",
    decoders: [space, { type: "ByteFallback" }, { type: "Fuse" }],
  },
  "Metaspace": { type: "Metaspace", replacement: "▁" },
  "WordPiece": { type: "WordPiece", prefix: "##", cleanup: false },
};

for (const [name, decoder] of Object.entries(decoders)) {
  Deno.test(`windowDecoder's joined pieces equal the whole decode: ${name}`, () => {
    const tokenizer = tokenizerWith(decoder);
    const id = fc.oneof(
      fc.nat(PIECES.length - 1),
      fc.integer({ min: 257, max: PIECES.length - 1 }),
      fc.constantFrom(...[0xf0, 0x9f, 0x98, 0x80, 0xe6, 0x41].map((byte) => byte + 1)),
    );
    fc.assert(
      fc.property(fc.array(id, { maxLength: 80 }), (ids) => {
        const incremental = tokenizer.decoder();
        const text = ids.map((id) => incremental.push(id)).join("");
        assert.equal(text + incremental.finish(), tokenizer.decode(ids));
      }),
      { numRuns: 400 },
    );
  });
}

Deno.test("windowDecoder never gives out half a character", () => {
  const decoder = tokenizerWith(decoders.SentencePiece).decoder();
  const pieces = [0xf0, 0x9f, 0x98, 0x80].map((byte) => decoder.push(byte + 1));
  assert.deepEqual(pieces, ["", "", "", ""]);
  assert.equal(decoder.push(PIECES.indexOf("a")), "😀");
  assert.equal(decoder.finish(), "a");
});
