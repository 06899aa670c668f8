/**
 * Encoding for BPE vocabularies, over bytes or characters: added tokens, normalisation, pre-tokenisation, merges. Its ids equal those of
 * the library for all text; it is several times as fast and keeps a tenth of the memory. It knows nothing of workers.
 */

import { DigitsPreTokenizer, type PreTokenizer, SplitPreTokenizer } from "@huggingface/tokenizers";
import { VerbatimError } from "../../core/errors.ts";
import type { EncodeOptions, TokenGuard } from "../../ports/tokenizer.ts";
import { AddedTokenSplitter } from "./hf_added_token_splitter.ts";
import { type BpeData, hashBytes, type TextEdit } from "./hf_bpe_data.ts";
import { characterSlot } from "./hf_character_bpe.ts";
import { BpeMerger } from "./hf_bpe_merge.ts";
import { type HfAddedToken, isObject, type JsonObject } from "./hf_files.ts";
import { normalizeText } from "./hf_normalize.ts";
import { RecentMap } from "../../core/recent_map.ts";

/** Shorter pre-tokens are remembered, as in Hugging Face's own encoder. */
const CACHED_LENGTH = 256;
const CACHED_PRE_TOKENS = 60_000;
/** Texts between added tokens, which is what messages are, are remembered whole within these bounds. */
const SECTION_LENGTH = { least: 256, most: 200_000 };
const CACHED_SECTION_CHARACTERS = 2_000_000;

export class BpeEncoder {
  readonly #data: BpeData;
  readonly #plainTokens: AddedTokenSplitter;
  /** Tokens that are looked for in normalised text. */
  readonly #normalizedTokens: AddedTokenSplitter | null;
  readonly #preTokenizers: readonly PreTokenizer[];
  readonly #merger: BpeMerger;
  readonly #cache = new RecentMap<number | Uint32Array>(CACHED_PRE_TOKENS);
  readonly #sections = new RecentMap<Uint32Array>(CACHED_SECTION_CHARACTERS);
  readonly #utf8 = new TextEncoder();
  #bytes = new Uint8Array(1024);
  #symbols = new Uint32Array(1024);
  #ids = new Uint32Array(1024);
  #size = 0;

  constructor(data: BpeData) {
    this.#data = data;
    const normalized = data.normalization === null ? [] : data.addedTokens.filter((token) => token.normalized);
    this.#plainTokens = new AddedTokenSplitter(data.addedTokens.filter((token) => !normalized.includes(token)));
    this.#normalizedTokens = normalized.length === 0
      ? null
      : new AddedTokenSplitter(normalized.map((token) => ({ ...token, content: this.#normalize(token.content) })));
    this.#preTokenizers = data.preTokenizers.map(preTokenizer);
    this.#merger = new BpeMerger(data);
  }

  encode(written: string, options: EncodeOptions): Uint32Array<ArrayBuffer> {
    // UTF-8 has no lone surrogates, and patterns must see what the bytes will say. Places stay as they are.
    const text = written.toWellFormed();
    const { addSpecialTokens = false, plainSpans = [], guards = [] } = options;
    if (plainSpans.length > 0) this.#mustKnowPlaces(guards);
    this.#size = 0;
    if (addSpecialTokens) { for (const id of this.#data.before) this.#push(id); }
    for (const section of this.#plainTokens.split(text, options)) this.#encodeSection(section);
    if (addSpecialTokens) { for (const id of this.#data.after) this.#push(id); }
    return this.#ids.slice(0, this.#size);
  }

  /** Normalisation moves text, so that spans can't tell which of its control tokens are plain. */
  #mustKnowPlaces(guards: readonly TokenGuard[]): void {
    if (this.#normalizedTokens === null) return;
    const isGuarded = (id: number) => guards.some(({ ids }) => ids.has(id));
    const token = this.#data.addedTokens.find((token) => token.normalized && (token.special || isGuarded(token.id)));
    if (token === undefined) return;
    throw new VerbatimError(
      "unsupported",
      `The control token ${
        JSON.stringify(token.content)
      } is found in normalised text, so it can't be told from plain text.`,
    );
  }

  #encodeSection(section: string | HfAddedToken): void {
    if (typeof section !== "string") {
      this.#push(section.id);
      return;
    }
    const { least, most } = SECTION_LENGTH;
    if (section.length < least || section.length > most) {
      this.#encodeUncached(section);
      return;
    }
    const known = this.#sections.get(section, section.length);
    if (known !== undefined) {
      this.#pushAll(known);
      return;
    }
    const start = this.#size;
    this.#encodeUncached(section);
    this.#sections.set(section, this.#ids.slice(start, this.#size), section.length);
  }

  #encodeUncached(section: string): void {
    const normalized = this.#normalize(section);
    if (this.#normalizedTokens === null) {
      this.#encodeText(normalized);
      return;
    }
    for (const piece of this.#normalizedTokens.split(normalized)) {
      if (typeof piece === "string") this.#encodeText(piece);
      else this.#push(piece.id);
    }
  }

  #normalize(text: string): string {
    const { normalization } = this.#data;
    if (normalization === null) return text;
    return typeof normalization === "string" ? normalizeText(text, normalization) : normalization.reduce(edited, text);
  }

  #encodeText(text: string): void {
    if (text === "") return;
    let pieces = [text];
    for (const preTokenizer of this.#preTokenizers) {
      const first = pieces[0];
      pieces = pieces.length === 1 && first !== undefined
        ? preTokenizer.pre_tokenize_text(first)
        : pieces.flatMap((piece) => preTokenizer.pre_tokenize_text(piece));
    }
    for (const piece of pieces) this.#encodePreToken(piece);
  }

  #encodePreToken(piece: string): void {
    const known = this.#cache.get(piece);
    if (known === undefined) {
      const ids = this.#mergePreToken(piece);
      if (piece.length < CACHED_LENGTH) this.#cache.set(piece, ids.length === 1 ? ids[0]! : ids.slice());
      this.#pushAll(ids);
    } else if (typeof known === "number") this.#push(known);
    else this.#pushAll(known);
  }

  #mergePreToken(piece: string): Uint32Array {
    if (this.#data.characters !== null) return this.#mergeCharacters(piece, this.#data.characters);
    if (this.#bytes.length < piece.length * 3) this.#bytes = new Uint8Array(piece.length * 6);
    const length = this.#utf8.encodeInto(piece, this.#bytes).written;
    const whole = this.#wholeToken(length);
    return whole < 0 ? this.#merger.merge(this.#bytes, length) : Uint32Array.of(whole);
  }

  /** Characters of the vocabulary as they are, others spelled in bytes, then merged. */
  #mergeCharacters(piece: string, table: Uint32Array): Uint32Array {
    if (this.#symbols.length < piece.length * 3) this.#symbols = new Uint32Array(piece.length * 6);
    const symbols = this.#symbols;
    const mask = table.length / 2 - 1;
    let length = 0;
    for (let index = 0; index < piece.length; index++) {
      const codePoint = piece.codePointAt(index)!;
      if (codePoint > 0xffff) index++;
      let slot = characterSlot(codePoint, mask);
      while (table[slot * 2] !== 0 && table[slot * 2] !== codePoint + 1) slot = (slot + 1) & mask;
      if (table[slot * 2] !== 0) {
        symbols[length++] = table[slot * 2 + 1]!;
        continue;
      }
      const { written } = this.#utf8.encodeInto(String.fromCodePoint(codePoint), this.#bytes);
      for (let at = 0; at < written; at++) symbols[length++] = this.#data.byteIds[this.#bytes[at]!]!;
    }
    return this.#merger.mergeIds(symbols, length);
  }

  /** The token that has exactly the first `length` bytes, or -1. */
  #wholeToken(length: number): number {
    if (this.#data.wholeTokens === null) return -1;
    const { table, tokens } = this.#data.wholeTokens;
    const mask = table.length - 1;
    let slot = hashBytes(this.#bytes, 0, length) & mask;
    for (; table[slot] !== 0; slot = (slot + 1) & mask) {
      const id = table[slot]! - 1;
      const start = tokens.offsets[id]!;
      if (tokens.offsets[id + 1]! - start !== length) continue;
      let index = 0;
      while (index < length && tokens.bytes[start + index] === this.#bytes[index]) index++;
      if (index === length) return id;
    }
    return -1;
  }

  #push(id: number): void {
    if (this.#size === this.#ids.length) this.#grow(1);
    this.#ids[this.#size++] = id;
  }

  #pushAll(ids: Uint32Array): void {
    if (this.#size + ids.length > this.#ids.length) this.#grow(ids.length);
    this.#ids.set(ids, this.#size);
    this.#size += ids.length;
  }

  #grow(by: number): void {
    const larger = new Uint32Array(this.#ids.length * 2 + by);
    larger.set(this.#ids);
    this.#ids = larger;
  }
}

function edited(text: string, edit: TextEdit): string {
  if (edit.type === "replace") return text.replaceAll(edit.find, () => edit.text);
  return text === "" ? text : edit.text + text;
}

/** The library compiles patterns; splits that keep every piece by itself are all that byte-level vocabularies use. */
function preTokenizer(config: JsonObject): PreTokenizer {
  if (config["type"] === "Digits") {
    return new DigitsPreTokenizer({ type: "Digits", individual_digits: config["individual_digits"] === true });
  }
  const pattern = config["pattern"];
  const behavior = String(config["behavior"]).toLowerCase();
  const isKnown = isObject(pattern) && (behavior === "isolated" || behavior === "removed");
  if (!isKnown) {
    throw new VerbatimError(
      "unsupported",
      `The tokenizer splits text in an unsupported way: ${JSON.stringify(config)}.`,
    );
  }
  const { Regex: regex, String: string } = pattern;
  const split = new SplitPreTokenizer({
    type: "Split",
    pattern: typeof regex === "string" ? { Regex: regex } : { String: String(string) },
    behavior: behavior === "isolated" ? "Isolated" : "Removed",
    invert: config["invert"] === true,
  });
  if (typeof regex === "string" && regex.includes("(?i:") && split.pattern !== null) {
    split.pattern = foldAll(split.pattern);
  }
  return split;
}

/** The library ignores case among ASCII letters only; Hugging Face's own patterns also take ſ for s and the Kelvin sign for k. */
function foldAll(pattern: RegExp): RegExp {
  return new RegExp(pattern.source.replaceAll("[sS]", "[sS\u017f]").replaceAll("[kK]", "[kK\u212a]"), pattern.flags);
}
