/**
 * The tables of a BPE vocabulary over characters with byte fallback (SentencePiece's kind): what it has beside the merges
 * of {@linkcode BpeData}. It only reads files; it does not encode.
 */

import type { BpeData, TextEdit } from "./hf_bpe_data.ts";
import { frameOf, mergesOf } from "./hf_bpe_data.ts";
import { type HfDescription, isObject, type JsonObject } from "./hf_files.ts";
import { sharedUint32 } from "./hf_shared_arrays.ts";

/** A code point's first slot in a table of `mask + 1` slots. Encoder and builder must agree. */
export function characterSlot(codePoint: number, mask: number): number {
  const hash = Math.imul(codePoint, 0x9e3779b1);
  return (hash ^ (hash >>> 15)) & mask;
}

/** The tables, or null where the files describe another kind of tokenizer. */
export function characterBpeData(description: HfDescription): BpeData | null {
  const { model, tokenizerJson, addedTokens } = description;
  const { vocab, merges } = model;
  if ((model["type"] ?? "BPE") !== "BPE" || !isObject(vocab) || !Array.isArray(merges)) return null;
  const isPlain = model["byte_fallback"] === true && model["ignore_merges"] !== true && !model["dropout"] &&
    !model["continuing_subword_prefix"] && !model["end_of_word_suffix"];
  const normalization = editsOf(tokenizerJson["normalizer"]);
  const frame = frameOf(tokenizerJson["post_processor"]);
  const byteIds = fallbackIds(vocab);
  if (!isPlain || normalization === null || frame === null || byteIds === null) return null;
  if (!splitsNothing(tokenizerJson["pre_tokenizer"], normalization)) return null;
  // Edits move text, so that a token looked for behind them can't be told from plain text.
  if (addedTokens.some((token) => token.normalized)) return null;
  const tables = mergesOf(vocab, merges);
  if (tables === null) return null;
  return {
    byteIds,
    characters: characterTable(vocab),
    ...tables,
    wholeTokens: null,
    normalization,
    preTokenizers: [],
    addedTokens,
    ...frame,
  };
}

function editsOf(normalizer: unknown): TextEdit[] | null {
  if (!isObject(normalizer)) return normalizer === null || normalizer === undefined ? [] : null;
  switch (normalizer["type"]) {
    case "Sequence": {
      const parts = normalizer["normalizers"];
      if (!Array.isArray(parts)) return null;
      const edits = parts.map(editsOf);
      return edits.every((edit) => edit !== null) ? edits.flat() : null;
    }
    case "Prepend":
      return typeof normalizer["prepend"] === "string" ? [{ type: "prepend", text: normalizer["prepend"] }] : null;
    case "Replace": {
      const { pattern, content } = normalizer;
      const find = isObject(pattern) ? pattern["String"] : undefined;
      if (typeof find !== "string" || find === "" || typeof content !== "string") return null;
      return [{ type: "replace", find, text: content }];
    }
    default:
      return null;
  }
}

/** A split at a text that normalisation leaves nowhere splits nothing. */
function splitsNothing(preTokenizer: unknown, edits: readonly TextEdit[]): boolean {
  if (preTokenizer === null || preTokenizer === undefined) return true;
  if (!isObject(preTokenizer) || preTokenizer["type"] !== "Split" || preTokenizer["invert"] === true) return false;
  const pattern = preTokenizer["pattern"];
  const at = isObject(pattern) ? pattern["String"] : undefined;
  const last = edits.at(-1);
  return last?.type === "replace" && last.find === at && !last.text.includes(last.find);
}

/** Ids of `<0x00>` to `<0xFF>`; null where a byte that may be needed has none. */
function fallbackIds(vocabulary: JsonObject): Uint32Array | null {
  const ids = sharedUint32(256);
  for (let byte = 0; byte < 256; byte++) {
    const id = vocabulary[`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`];
    if (typeof id === "number") ids[byte] = id;
    else if (byte >= 0x80 || typeof vocabulary[String.fromCharCode(byte)] !== "number") return null;
  }
  return ids;
}

/** Open addressing: slots of code point + 1 (0: empty) and id. */
function characterTable(vocabulary: JsonObject): Uint32Array {
  const characters: [codePoint: number, id: number][] = [];
  for (const text in vocabulary) {
    if (text.length > 2) continue;
    const codePoint = text.codePointAt(0);
    const id = vocabulary[text];
    if (codePoint === undefined || typeof id !== "number") continue;
    if (text.length === (codePoint > 0xffff ? 2 : 1)) characters.push([codePoint, id]);
  }
  let slots = 1024;
  while (slots < characters.length * 2) slots *= 2;
  const table = sharedUint32(slots * 2);
  for (const [codePoint, id] of characters) {
    let slot = characterSlot(codePoint, slots - 1);
    while (table[slot * 2] !== 0) slot = (slot + 1) & (slots - 1);
    table[slot * 2] = codePoint + 1;
    table[slot * 2 + 1] = id;
  }
  return table;
}
