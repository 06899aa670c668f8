/**
 * Encoding and decoding for one vocabulary: BPE by its own tables, everything else by the library. It decides
 * which, and knows nothing of workers.
 */

import { createHash } from "node:crypto";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { VerbatimError } from "../../core/errors.ts";
import type { IncrementalDecoder } from "../../ports/tokenizer.ts";
import { type BpeData, bpeData } from "./hf_bpe_data.ts";
import { BpeEncoder } from "./hf_bpe_encoder.ts";
import { ByteLevelDecoder, type TokenBytes, tokenBytes } from "./hf_byte_level.ts";
import { characterBpeData } from "./hf_character_bpe.ts";
import { createEncoder, type Encoder, type EncoderSource, type LibrarySource } from "./hf_encoder.ts";
import { type HfDescription, isObject } from "./hf_files.ts";
import { hfFingerprint } from "./hf_fingerprint.ts";
import { LibraryEncoder } from "./hf_library_encoder.ts";
import { windowDecoder } from "./hf_window_decoder.ts";

export interface Decoding {
  decode(ids: ArrayLike<number>, skipSpecialTokens: boolean): string;
  /** Null where a token alone does not tell its bytes. */
  tokenBytes(id: number): Uint8Array | null;
  decoder(): IncrementalDecoder;
}

export interface Codec {
  readonly encoder: Encoder;
  readonly decoding: Decoding;
  /** What a worker needs to make the same encoder. */
  readonly source: EncoderSource;
  readonly fingerprint: () => string;
  /** UTF-16 units that take about ten milliseconds on one core while nothing is cached. */
  readonly longText: number;
}

const LONG_TEXT = { bpe: 50_000, characters: 20_000, library: 10_000 };

export function createCodec(description: HfDescription): Codec {
  mustNotHaveSingleWords(description);
  const decoder = description.tokenizerJson["decoder"];
  const isByteLevel = isObject(decoder) && decoder["type"] === "ByteLevel";
  const tokens = isByteLevel ? tokenBytes(description.tokens, description.addedTokens) : null;
  const data = tokens === null ? null : bpeData(description, tokens);
  return tokens === null || data === null ? libraryCodec(description, tokens) : bpeCodec(description, tokens, data);
}

/** Nothing here refers to the description, so that its strings can be collected. */
function bpeCodec({ specialIds }: HfDescription, tokens: TokenBytes, data: BpeData): Codec {
  const source: EncoderSource = { type: "bpe", data };
  let fingerprint: string | null = null;
  return {
    encoder: createEncoder(source),
    decoding: byteLevelDecoding(tokens, specialIds),
    source,
    fingerprint: () => fingerprint ??= bpeFingerprint(tokens, data),
    longText: LONG_TEXT.bpe,
  };
}

function libraryCodec(description: HfDescription, tokens: TokenBytes | null): Codec {
  const { tokenizerJson, tokenizerConfig, specialIds, addedTokens } = description;
  const characters = tokens === null ? characterBpeData(description) : null;
  const library = new LibraryTokenizer(tokenizerJson, tokenizerConfig);
  const librarySource: LibrarySource = { type: "library", tokenizerJson, tokenizerConfig, addedTokens };
  const source: EncoderSource = characters === null ? librarySource : { type: "bpe", data: characters };
  let fingerprint: string | null = null;
  return {
    encoder: characters === null ? new LibraryEncoder(librarySource, library) : new BpeEncoder(characters),
    decoding: tokens === null ? libraryDecoding(library, specialIds) : byteLevelDecoding(tokens, specialIds),
    source,
    fingerprint: () => fingerprint ??= hfFingerprint(description),
    longText: characters === null ? LONG_TEXT.library : LONG_TEXT.characters,
  };
}

function byteLevelDecoding(tokens: TokenBytes, specialIds: ReadonlySet<number>): Decoding {
  const decoder = new ByteLevelDecoder(tokens);
  return {
    decode: (ids, skipSpecialTokens) => decoder.decode(ids, skipSpecialTokens ? specialIds : null),
    tokenBytes: (id) => tokens.bytes.slice(tokens.offsets[id], tokens.offsets[id + 1]),
    decoder: () => decoder.decoder(),
  };
}

function libraryDecoding(library: LibraryTokenizer, specialIds: ReadonlySet<number>): Decoding {
  const decode = (ids: number[]) =>
    ids.length === 0 ? "" : library.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  return {
    decode: (ids, skipSpecialTokens) => {
      const list = Array.from(ids);
      return decode(skipSpecialTokens ? list.filter((id) => !specialIds.has(id)) : list);
    },
    tokenBytes: () => null,
    decoder: () => windowDecoder(decode),
  };
}

/** Such tokens would be found inside words too, where Hugging Face's own encoder does not. */
function mustNotHaveSingleWords(description: HfDescription): void {
  const token = description.addedTokens.find((token) => token.singleWord);
  if (token === undefined) return;
  throw new VerbatimError(
    "unsupported",
    `The tokenizer's added token ${
      JSON.stringify(token.content)
    } counts only as a word of its own, which is not supported.`,
  );
}

/** SHA-256 over the bytes of all tokens, the merges by rank, and everything else that decides ids. */
function bpeFingerprint(tokens: TokenBytes, data: BpeData): string {
  const hash = createHash("sha256");
  for (const array of [tokens.offsets, tokens.bytes, tokens.added, data.byteIds, data.mergePairs]) {
    hash.update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  }
  const { normalization, preTokenizers, addedTokens, before, after } = data;
  const wholeTokens = data.wholeTokens !== null;
  hash.update(JSON.stringify([normalization, preTokenizers, addedTokens, before, after, wholeTokens]));
  return hash.digest("hex");
}
