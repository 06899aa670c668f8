import assert from "node:assert/strict";
import fc from "fast-check";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import vectors from "../../../tests/fixtures/vectors/tokenizer/qwen3.json" with { type: "json" };
import { qwen3Tokenizer, qwen3TokenizerFiles } from "../../../tests/fixtures/qwen3_tokenizer.ts";
import { isObject } from "./hf_files.ts";
import { createHfTokenizer } from "./hf_tokenizer.ts";

const tokenizer = await qwen3Tokenizer();
const files = await qwen3TokenizerFiles();
const oracle = library();

function library(): LibraryTokenizer {
  const { tokenizerJson, tokenizerConfig } = files;
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

const anyText = fc.array(
  fc.oneof(
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.string({ unit: "grapheme", maxLength: 20 }),
    fc.string({ unit: "grapheme-ascii", maxLength: 40 }),
    fc.constantFrom(...tokenizer.addedTokens.keys()),
    fc.constantFrom(" ", "\n", "\r\n", "\n\n", "<|im_", "'s", "'RE", "e\u0301", "\u00a0", "\u0085", "0123", "\ud800"),
    fc.tuple(fc.constantFrom("a", " ", "\n", "=", "é", "ab"), fc.integer({ min: 1, max: 200 }))
      .map(([unit, count]) => unit.repeat(count)),
  ),
  { maxLength: 12 },
).map((pieces) => pieces.join(""));

Deno.test("encode and decode give what Hugging Face's own library gives", () => {
  for (const [text, ids] of vectors.encode) assert.deepEqual([...tokenizer.encode(String(text))], ids, String(text));
  for (const [ids, text, skipped] of vectors.decode) {
    assert.ok(Array.isArray(ids));
    assert.equal(tokenizer.decode(ids), text);
    assert.equal(tokenizer.decode(ids, { skipSpecialTokens: true }), skipped);
  }
});

Deno.test("encode takes special tokens in plain spans for text, as Hugging Face's own library does", () => {
  for (const [text, ids] of vectors.plain) {
    const all = String(text);
    assert.deepEqual([...tokenizer.encode(all, { plainSpans: [0, all.length] })], ids, all);
  }
});

Deno.test("encode keeps the special tokens outside of plain spans, and those alone", () => {
  const special = [...tokenizer.addedTokens].filter(([, id]) => tokenizer.specialIds.has(id));
  const piece = fc.record({ text: anyText, plain: fc.boolean() });
  fc.assert(fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
    let text = "";
    const plainSpans: number[] = [];
    for (const { text: part, plain } of pieces) {
      if (plain && part !== "") plainSpans.push(text.length, text.length + part.length);
      text += part;
    }
    const touches = (start: number, end: number) =>
      plainSpans.some((from, at) => at % 2 === 0 && from < end && (plainSpans[at + 1] ?? 0) > start);
    const wanted: number[] = [];
    for (let at = 0; at < text.length;) {
      const found = special.find(([token]) => text.startsWith(token, at) && !touches(at, at + token.length));
      if (found !== undefined) wanted.push(found[1]);
      at += found === undefined ? 1 : found[0].length;
    }
    const ids = tokenizer.encode(text, { plainSpans });
    assert.deepEqual(Array.from(ids).filter((id) => tokenizer.specialIds.has(id)), wanted);
  }));
});

Deno.test("encode equals the JavaScript library's encode for any text", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.deepEqual([...tokenizer.encode(text)], oracle.encode(text, { add_special_tokens: false }).ids);
    }),
    { numRuns: 500 },
  );
});

Deno.test("encode stays exact where a run without a boundary is long", () => {
  for (
    const text of ["a".repeat(3000), " ".repeat(3000), "ab".repeat(1500) + "\n", "é".repeat(900), "-=".repeat(800)]
  ) {
    assert.deepEqual([...tokenizer.encode(text)], oracle.encode(text, { add_special_tokens: false }).ids);
  }
});

Deno.test("encode gives the same ids for a text it remembers", () => {
  const text = "A message that is long enough to be remembered whole. ".repeat(20);
  const first = tokenizer.encode(text);
  const wanted = first.slice();
  first.fill(0);
  assert.deepEqual(tokenizer.encode(text), wanted);
  assert.deepEqual(tokenizer.encode(`<|im_start|>${text}<|im_end|>`), Uint32Array.of(151644, ...wanted, 151645));
});

Deno.test("decode equals the library's decode for any ids", () => {
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

Deno.test("decode is the inverse of encode for normalised text", () => {
  fc.assert(fc.property(anyText, (text) => {
    const wanted = text.toWellFormed().normalize("NFC");
    // Normalisation does not reach across added tokens.
    fc.pre(![...tokenizer.addedTokens.keys()].some((token) => text.includes(token)));
    assert.equal(tokenizer.decode(tokenizer.encode(wanted)), wanted);
  }));
});

Deno.test("decoder's joined pieces equal the whole decode", () => {
  fc.assert(
    fc.property(anyIds, (ids) => {
      const decoder = tokenizer.decoder();
      const text = ids.map((id) => decoder.push(id)).join("");
      assert.equal(text + decoder.finish(), tokenizer.decode(ids));
    }),
    { numRuns: 1000 },
  );
});

Deno.test("tokenBytes' joined bytes are the text's UTF-8, however its characters are cut into tokens", () => {
  fc.assert(
    fc.property(anyText.map((text) => text.normalize("NFC").toWellFormed()), (text) => {
      const bytes = Array.from(tokenizer.encode(text), (id) => Array.from(tokenizer.tokenBytes(id) ?? [])).flat();
      assert.deepEqual(bytes, Array.from(new TextEncoder().encode(text)));
    }),
  );
});

Deno.test("decode refuses an id that is out of range", () => {
  for (const id of [-1, tokenizer.vocabSize, 1.5, NaN]) {
    assert.throws(() => tokenizer.decode([1, id]), { code: "token_out_of_range" });
    assert.throws(() => tokenizer.decoder().push(id), { code: "token_out_of_range" });
  }
});

Deno.test("createHfTokenizer tells what the files say", () => {
  assert.equal(tokenizer.vocabSize, 151669);
  assert.equal(tokenizer.eosId, 151645);
  assert.equal(tokenizer.modelMaxLength, 131072);
  assert.deepEqual(tokenizer.specialTokens, { eos_token: "<|im_end|>", pad_token: "<|endoftext|>" });
  assert.equal(tokenizer.addedTokens.get("<think>"), 151667);
  assert.ok(tokenizer.specialIds.has(151644) && !tokenizer.specialIds.has(151667));
  assert.ok(tokenizer.chatTemplate?.includes("<|im_start|>"));
});

Deno.test("fingerprint counts what decides ids and nothing else", () => {
  const { tokenizerJson, tokenizerConfig } = files;
  assert.ok(isObject(tokenizerJson) && isObject(tokenizerConfig) && isObject(tokenizerJson["model"]));
  const model = tokenizerJson["model"];
  assert.ok(isObject(model["vocab"]) && Array.isArray(model["merges"]) && Array.isArray(tokenizerJson["added_tokens"]));
  const of = (json: object, config: object = tokenizerConfig) =>
    createHfTokenizer({ tokenizerJson: { ...tokenizerJson, ...json }, tokenizerConfig: config }).fingerprint;
  assert.match(tokenizer.fingerprint, /^[0-9a-f]{64}$/);
  const merges = model["merges"].map((merge) => Array.isArray(merge) ? merge.join(" ") : merge);
  const vocab = Object.fromEntries(Object.entries(model["vocab"]).reverse());
  assert.equal(
    of({ model: { ...model, vocab, merges } }, { ...tokenizerConfig, chat_template: "" }),
    tokenizer.fingerprint,
  );
  assert.notEqual(of({ model: { ...model, merges: merges.slice(0, -1) } }), tokenizer.fingerprint);
  assert.notEqual(of({ normalizer: null }), tokenizer.fingerprint);
});

Deno.test("createHfTokenizer adds the tokens that only tokenizer_config.json knows", () => {
  const { tokenizerJson, tokenizerConfig } = files;
  assert.ok(isObject(tokenizerJson) && isObject(tokenizerConfig) && isObject(tokenizerConfig["added_tokens_decoder"]));
  const more = createHfTokenizer({
    tokenizerJson,
    tokenizerConfig: {
      ...tokenizerConfig,
      bos_token: { content: "<s>" },
      chat_template: [{ name: "other", template: "no" }, { name: "default", template: "yes" }],
      added_tokens_decoder: {
        ...tokenizerConfig["added_tokens_decoder"],
        151669: { content: "<new>", special: true, normalized: false },
      },
    },
  }, { worker: "none" });
  assert.equal(more.vocabSize, 151670);
  assert.deepEqual([...more.encode("a<new>")], [64, 151669]);
  assert.ok(more.specialIds.has(151669));
  assert.equal(more.decode([64, 151669], { skipSpecialTokens: true }), "a");
  assert.equal(more.chatTemplate, "yes");
  assert.equal(more.specialTokens["bos_token"], "<s>");
});

Deno.test("createHfTokenizer refuses files that are no tokenizer", () => {
  const bad: [unknown, unknown][] = [
    [null, {}],
    [{ model: {} }, {}],
    [{ model: { vocab: { a: "0" } } }, {}],
    [{ model: { vocab: { a: 0 } } }, []],
    [{ model: { vocab: { a: 0 } }, added_tokens: [{ content: 1 }] }, {}],
  ];
  for (const [tokenizerJson, tokenizerConfig] of bad) {
    assert.throws(() => createHfTokenizer({ tokenizerJson, tokenizerConfig }), { code: "invalid_request" });
  }
});
