/** The identity of a tokenizer: what decides which ids a text becomes. It does not know how they are computed. */

import { createHash } from "node:crypto";
import type { HfDescription } from "./hf_files.ts";
import { isObject } from "./hf_files.ts";

/**
 * SHA-256, in hex, over vocabulary, merges, added tokens, normaliser and pre-tokeniser. Neither the order of keys in the
 * file nor the way merges are written counts.
 */
export function hfFingerprint(description: HfDescription): string {
  const { tokenizerJson, model, tokens, addedTokens } = description;
  const hash = createHash("sha256");
  hash.update(JSON.stringify(tokens.map((token) => token ?? null)));
  const merges = Array.isArray(model["merges"]) ? model["merges"] : [];
  hash.update(JSON.stringify(merges.map((merge) => Array.isArray(merge) ? merge.join(" ") : merge)));
  hash.update(JSON.stringify(addedTokens));
  const { vocab: _vocab, merges: _merges, ...rest } = model;
  hash.update(JSON.stringify(sorted([
    rest,
    // Unigram scores decide as much as its pieces.
    Array.isArray(model["vocab"]) ? model["vocab"] : null,
    tokenizerJson["normalizer"],
    tokenizerJson["pre_tokenizer"],
    tokenizerJson["post_processor"],
  ])));
  return hash.digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
