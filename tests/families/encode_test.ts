/** Ids equal those of Hugging Face's own tokenizers, for thousands of texts that a seed repeats. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { isObject } from "../../shared/adapters/tokenizer/hf_files.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { nastyChunks, RANDOM_CHUNKS, randomChunk } from "../golden/random_texts.ts";
import vocabularies from "../golden/vocabularies.json" with { type: "json" };
import { packagedFiles, packagedTokenizer } from "./packaged_vocabulary.ts";

interface Golden {
  readonly tokens: number;
  readonly random: readonly string[];
  readonly nasty: readonly string[];
  readonly decode: readonly string[];
}

const DECODED_A_CHUNK = 100;

for (const name of vocabularies) {
  Deno.test(`${name}: encode and decode equal Hugging Face's own`, async () => {
    const golden = await readGolden(name);
    const tokenizer = await packagedTokenizer(name);
    const added = await addedTokens(name);
    const random = Array.from({ length: RANDOM_CHUNKS }, (_, chunk) => randomChunk(chunk, added));
    assert.deepEqual(encoded(tokenizer, random), golden.random);
    assert.deepEqual(encoded(tokenizer, nastyChunks(added)), golden.nasty);
    assert.deepEqual(decoded(tokenizer, golden.tokens, golden.decode.length), golden.decode);
  });
}

async function readGolden(name: string): Promise<Golden> {
  const file = `../golden/encode/${name.split("/").at(-1)}.json`;
  return JSON.parse(await Deno.readTextFile(new URL(file, import.meta.url)));
}

/** By id, and those of tokenizer.json alone, as the script has them. */
async function addedTokens(name: string): Promise<string[]> {
  const { tokenizerJson } = await packagedFiles(name);
  assert.ok(isObject(tokenizerJson) && Array.isArray(tokenizerJson["added_tokens"]));
  const tokens: { id: number; content: string }[] = tokenizerJson["added_tokens"];
  return tokens.toSorted((a, b) => a.id - b.id).map((token) => token.content);
}

function encoded(tokenizer: Tokenizer, chunks: readonly (readonly string[])[]): string[] {
  return chunks.map((texts) => digest(texts.map((text) => [text, tokenizer.encode(text)])));
}

function decoded(tokenizer: Tokenizer, tokens: number, chunks: number): string[] {
  return Array.from({ length: chunks }, (_, chunk) => {
    const random = seededRandom(0xdec0de + chunk);
    const cases = Array.from({ length: DECODED_A_CHUNK }, (): [string, Uint32Array] => {
      const ids = new Uint32Array(1 + random.integer(24)).map(() => random.integer(tokens));
      return [tokenizer.decode(ids), ids];
    });
    return digest(cases);
  });
}

/** As the script does: lengths before text and ids, little-endian, and the digest's first 16 hex digits. */
function digest(cases: readonly (readonly [text: string, ids: Uint32Array])[]): string {
  const hash = createHash("sha256");
  for (const [text, ids] of cases) {
    const bytes = new TextEncoder().encode(text);
    hash.update(words([bytes.length])).update(bytes).update(words([ids.length, ...ids]));
  }
  return hash.digest("hex").slice(0, 16);
}

function words(values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  for (const [index, value] of values.entries()) view.setUint32(index * 4, value, true);
  return bytes;
}
