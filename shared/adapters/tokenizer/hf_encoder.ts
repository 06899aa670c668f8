/** An encoder made from plain data, so that a worker makes the same one as the tokenizer itself. */

import type { EncodeOptions } from "../../ports/tokenizer.ts";
import type { BpeData } from "./hf_bpe_data.ts";
import { BpeEncoder } from "./hf_bpe_encoder.ts";
import type { HfAddedToken, JsonObject } from "./hf_files.ts";
import { LibraryEncoder } from "./hf_library_encoder.ts";

/** Plain data: it survives a message to a worker. */
export type EncoderSource =
  | { readonly type: "bpe"; readonly data: BpeData }
  | LibrarySource;

export interface LibrarySource {
  readonly type: "library";
  readonly tokenizerJson: JsonObject;
  readonly tokenizerConfig: JsonObject;
  readonly addedTokens: readonly HfAddedToken[];
}

export interface Encoder {
  /** The ids, in memory of their own. */
  encode(text: string, options: EncodeOptions): Uint32Array<ArrayBuffer>;
}

export function createEncoder(source: EncoderSource): Encoder {
  return source.type === "bpe" ? new BpeEncoder(source.data) : new LibraryEncoder(source);
}
