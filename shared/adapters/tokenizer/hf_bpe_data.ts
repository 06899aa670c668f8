/**
 * The tables of a BPE vocabulary, read here for byte-level ones: all that encoding needs, as typed arrays that a worker can share. It only reads
 * files; it does not encode.
 */

import { byteCharacters, type TokenBytes } from "./hf_byte_level.ts";
import { sharedUint32 } from "./hf_shared_arrays.ts";
import { type HfAddedToken, type HfDescription, isObject, type JsonObject } from "./hf_files.ts";

/** Plain data: it survives a message to a worker. */
export interface BpeData {
  /** The id of each single byte. */
  readonly byteIds: Uint32Array;
  /** Characters that merging begins with, others being spelled in bytes; null: all are. */
  readonly characters: Uint32Array | null;
  /** Left and right id of every merge, by rank. */
  readonly mergePairs: Uint32Array;
  /** Open addressing over `mergePairs`: slots of left id, right id, rank + 1 (0: empty), merged id. */
  readonly mergeTable: Uint32Array;
  /** Finds a pre-token that is a token as it stands; null where merges alone decide. */
  readonly wholeTokens: WholeTokens | null;
  readonly normalization: "NFC" | "NFD" | "NFKC" | "NFKD" | readonly TextEdit[] | null;
  /** The pre-tokenisers before the byte-level one. */
  readonly preTokenizers: readonly JsonObject[];
  readonly addedTokens: readonly HfAddedToken[];
  /** Ids put before and after a text that is encoded with special tokens. */
  readonly before: readonly number[];
  readonly after: readonly number[];
}

/** A normaliser that edits text. */
export type TextEdit =
  | { readonly type: "prepend"; readonly text: string }
  | { readonly type: "replace"; readonly find: string; readonly text: string };

/** Open addressing from a token's bytes to id + 1 (0: empty). */
export interface WholeTokens {
  readonly tokens: TokenBytes;
  readonly table: Uint32Array;
}

/** FNV-1a over a stretch of bytes. Encoder and builder must agree. */
export function hashBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let index = start; index < end; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** A merge's first slot in a table of `mask + 1` slots. Encoder and builder must agree. */
export function mergeSlot(left: number, right: number, mask: number): number {
  const hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
  return (hash ^ (hash >>> 15)) & mask;
}

/** The tables, or null where the files describe another kind of tokenizer, which the library encodes. */
export function bpeData(description: HfDescription, tokens: TokenBytes): BpeData | null {
  const { model, tokenizerJson } = description;
  if ((model["type"] ?? "BPE") !== "BPE" || !isObject(model["vocab"]) || !Array.isArray(model["merges"])) return null;
  const plain = !model["dropout"] && !model["continuing_subword_prefix"] && !model["end_of_word_suffix"] &&
    !model["continuing_subword_suffix"];
  const normalization = normalizationOf(tokenizerJson["normalizer"]);
  const preTokenizers = preTokenizersOf(tokenizerJson["pre_tokenizer"]);
  const frame = frameOf(tokenizerJson["post_processor"]);
  const byteIds = byteIdsOf(model["vocab"]);
  if (!plain || normalization === undefined || preTokenizers === null || frame === null || byteIds === null) {
    return null;
  }
  const merges = mergesOf(model["vocab"], model["merges"]);
  if (merges === null) return null;
  return {
    byteIds,
    characters: null,
    ...merges,
    wholeTokens: model["ignore_merges"] === true ? wholeTokensOf(tokens) : null,
    normalization,
    preTokenizers,
    addedTokens: description.addedTokens,
    ...frame,
  };
}

function byteIdsOf(vocabulary: JsonObject): Uint32Array | null {
  const ids = sharedUint32(256);
  for (const [byte, character] of byteCharacters().entries()) {
    const id = vocabulary[character];
    if (typeof id !== "number") return null;
    ids[byte] = id;
  }
  return ids;
}

/** Pairs and table of the merges; null where one is not of the vocabulary. */
export function mergesOf(
  vocabulary: JsonObject,
  merges: readonly unknown[],
): { mergePairs: Uint32Array; mergeTable: Uint32Array } | null {
  let slots = 1024;
  while (slots < merges.length * 1.5) slots *= 2;
  const mask = slots - 1;
  const mergeTable = sharedUint32(slots * 4);
  const mergePairs = sharedUint32(merges.length * 2);
  for (const [rank, merge] of merges.entries()) {
    const [left, right] = Array.isArray(merge) ? merge : typeof merge === "string" ? splitMerge(merge) : [];
    if (typeof left !== "string" || typeof right !== "string") return null;
    const leftId = vocabulary[left];
    const rightId = vocabulary[right];
    const mergedId = vocabulary[left + right];
    if (typeof leftId !== "number" || typeof rightId !== "number" || typeof mergedId !== "number") return null;
    mergePairs[rank * 2] = leftId;
    mergePairs[rank * 2 + 1] = rightId;
    let slot = mergeSlot(leftId, rightId, mask) * 4;
    while (mergeTable[slot + 2] !== 0 && (mergeTable[slot] !== leftId || mergeTable[slot + 1] !== rightId)) {
      slot = (slot + 4) & (slots * 4 - 1);
    }
    // Of a merge listed twice the later rank holds, as in a map that is filled in order.
    mergeTable[slot] = leftId;
    mergeTable[slot + 1] = rightId;
    mergeTable[slot + 2] = rank + 1;
    mergeTable[slot + 3] = mergedId;
  }
  return { mergePairs, mergeTable };
}

function splitMerge(merge: string): string[] {
  const space = merge.indexOf(" ");
  return space < 0 ? [] : [merge.slice(0, space), merge.slice(space + 1)];
}

function wholeTokensOf(tokens: TokenBytes): WholeTokens {
  const { bytes, offsets, added } = tokens;
  let slots = 1024;
  while (slots < added.length * 1.5) slots *= 2;
  const table = sharedUint32(slots);
  for (let id = 0; id < added.length; id++) {
    if (added[id] === 1 || offsets[id] === offsets[id + 1]) continue;
    let slot = hashBytes(bytes, offsets[id]!, offsets[id + 1]!) & (slots - 1);
    while (table[slot] !== 0) slot = (slot + 1) & (slots - 1);
    table[slot] = id + 1;
  }
  return { tokens, table };
}

/** Undefined: a normaliser that only the library knows. */
function normalizationOf(normalizer: unknown): BpeData["normalization"] | undefined {
  if (normalizer === null || normalizer === undefined) return null;
  if (!isObject(normalizer)) return undefined;
  switch (normalizer["type"]) {
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return normalizer["type"];
    case "Sequence": {
      const parts = normalizer["normalizers"];
      if (!Array.isArray(parts) || parts.length > 1) return undefined;
      return normalizationOf(parts[0]);
    }
    default:
      return undefined;
  }
}

/** The pre-tokenisers but the last, which must be byte-level without a prefix space; its own pattern counts as a split. */
function preTokenizersOf(preTokenizer: unknown): JsonObject[] | null {
  if (!isObject(preTokenizer)) return null;
  const parts = preTokenizer["type"] === "Sequence" ? preTokenizer["pretokenizers"] : [preTokenizer];
  if (!Array.isArray(parts) || !parts.every(isObject)) return null;
  const last = parts.at(-1);
  if (last === undefined || last["type"] !== "ByteLevel" || last["add_prefix_space"] === true) return null;
  const splits = parts.slice(0, -1);
  if (last["use_regex"] !== false) {
    splits.push({ type: "Split", pattern: { Regex: GPT2_PATTERN }, behavior: "Isolated" });
  }
  return splits.every((part) => part["type"] === "Split" || part["type"] === "Digits") ? splits : null;
}

/** What the byte-level pre-tokeniser splits at by itself (Hugging Face's `ByteLevel`, `use_regex`). */
const GPT2_PATTERN = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/** The ids around a text, as far as the post-processor is a template of special tokens; null: only the library knows. */
export function frameOf(postProcessor: unknown): { before: number[]; after: number[] } | null {
  if (postProcessor === null || postProcessor === undefined) return { before: [], after: [] };
  if (!isObject(postProcessor)) return null;
  switch (postProcessor["type"]) {
    case "ByteLevel":
      return { before: [], after: [] };
    case "Sequence": {
      const parts = postProcessor["processors"];
      if (!Array.isArray(parts)) return null;
      const frame: { before: number[]; after: number[] } = { before: [], after: [] };
      for (const part of parts) {
        const inner = frameOf(part);
        if (inner === null) return null;
        frame.before.unshift(...inner.before);
        frame.after.push(...inner.after);
      }
      return frame;
    }
    case "TemplateProcessing":
      return templateFrame(postProcessor);
    default:
      return null;
  }
}

function templateFrame(postProcessor: JsonObject): { before: number[]; after: number[] } | null {
  const { single, special_tokens: known } = postProcessor;
  if (!Array.isArray(single) || !isObject(known)) return null;
  const frame: { before: number[]; after: number[] } = { before: [], after: [] };
  let side = frame.before;
  for (const item of single) {
    if (!isObject(item)) return null;
    const special = item["SpecialToken"];
    if (!isObject(special)) {
      side = frame.after;
      continue;
    }
    const entry = known[String(special["id"])];
    if (!isObject(entry) || !Array.isArray(entry["ids"])) return null;
    for (const id of entry["ids"]) side.push(Number(id));
  }
  return frame;
}
