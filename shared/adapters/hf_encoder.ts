/** An encoder made from plain data, so that a worker makes the same one as the tokenizer itself. */

import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import type { BpeData } from "./hf_bpe_data.ts";
import { BpeEncoder } from "./hf_bpe_encoder.ts";
import type { JsonObject } from "./hf_files.ts";

/** Plain data: it survives a message to a worker. */
export type EncoderSource =
  | { readonly type: "bpe"; readonly data: BpeData }
  | { readonly type: "library"; readonly tokenizerJson: JsonObject; readonly tokenizerConfig: JsonObject };

export interface Encoder {
  /** The ids, in memory of their own. */
  encode(text: string, addSpecialTokens: boolean): Uint32Array<ArrayBuffer>;
}

export function createEncoder(source: EncoderSource): Encoder {
  if (source.type === "bpe") return new BpeEncoder(source.data);
  return libraryEncoder(new LibraryTokenizer(source.tokenizerJson, source.tokenizerConfig));
}

/** The library's own encoder, for all vocabularies but byte-level ones. */
export function libraryEncoder(library: LibraryTokenizer): Encoder {
  return {
    encode: (text, addSpecialTokens) =>
      Uint32Array.from(library.encode(text, { add_special_tokens: addSpecialTokens }).ids),
  };
}
