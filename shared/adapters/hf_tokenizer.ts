/**
 * A tokenizer from the files that Hugging Face models carry. It does not know where the files come from, and it never
 * cleans text up: decoded text is exactly what the tokens spell.
 */

import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { VerbatimError } from "../core/errors.ts";
import type { IncrementalDecoder, Tokenizer } from "../ports/tokenizer.ts";
import { ByteLevelDecoder, tokenBytes } from "./hf_byte_level.ts";
import { describeHfFiles, type HfDescription, type HfTokenizerFiles, isObject } from "./hf_files.ts";
import { hfFingerprint } from "./hf_fingerprint.ts";
import { windowDecoder } from "./hf_window_decoder.ts";

/** Makes a tokenizer. Files that describe none are `invalid_request`. */
export function createHfTokenizer(files: HfTokenizerFiles): Tokenizer {
  return new HfTokenizer(describeHfFiles(files));
}

class HfTokenizer implements Tokenizer {
  readonly #description: HfDescription;
  readonly #library: LibraryTokenizer;
  readonly #byteLevel: ByteLevelDecoder | null;
  readonly addedTokens: ReadonlyMap<string, number>;
  #fingerprint: string | null = null;

  constructor(description: HfDescription) {
    this.#description = description;
    this.#library = new LibraryTokenizer(description.tokenizerJson, description.tokenizerConfig);
    const decoder = description.tokenizerJson["decoder"];
    this.#byteLevel = isObject(decoder) && decoder["type"] === "ByteLevel"
      ? new ByteLevelDecoder(tokenBytes(description.tokens, description.addedTokens))
      : null;
    this.addedTokens = new Map(description.addedTokens.map((token) => [token.content, token.id]));
  }

  get vocabSize(): number {
    return this.#description.tokens.length;
  }

  get specialIds(): ReadonlySet<number> {
    return this.#description.specialIds;
  }

  get eosId(): number | null {
    return this.#description.eosId;
  }

  get chatTemplate(): string | null {
    return this.#description.chatTemplate;
  }

  get specialTokens(): Readonly<Record<string, string>> {
    return this.#description.specialTokens;
  }

  get modelMaxLength(): number | null {
    return this.#description.modelMaxLength;
  }

  get fingerprint(): string {
    return this.#fingerprint ??= hfFingerprint(this.#description);
  }

  encode(text: string, options: { addSpecialTokens?: boolean } = {}): Uint32Array {
    if (text === "" && options.addSpecialTokens !== true) return new Uint32Array(0);
    const { ids } = this.#library.encode(text, { add_special_tokens: options.addSpecialTokens ?? false });
    return Uint32Array.from(ids);
  }

  encodeAsync(
    text: string,
    options: { addSpecialTokens?: boolean; signal?: AbortSignal } = {},
  ): Promise<Uint32Array> {
    return new Promise((resolve) => {
      options.signal?.throwIfAborted();
      resolve(this.encode(text, options));
    });
  }

  decode(ids: ArrayLike<number>, options: { skipSpecialTokens?: boolean } = {}): string {
    for (let index = 0; index < ids.length; index++) this.#check(ids[index], index);
    if (this.#byteLevel !== null) {
      return this.#byteLevel.decode(ids, options.skipSpecialTokens === true ? this.specialIds : null);
    }
    return this.#decodeByLibrary(Array.from(ids), options.skipSpecialTokens === true);
  }

  decoder(): IncrementalDecoder {
    const decoder = this.#byteLevel?.decoder() ?? windowDecoder((ids) => this.#decodeByLibrary(ids, false));
    return {
      push: (id) => {
        this.#check(id, null);
        return decoder.push(id);
      },
      finish: () => decoder.finish(),
    };
  }

  close(): void {}

  #decodeByLibrary(ids: number[], skipSpecialTokens: boolean): string {
    if (ids.length === 0) return "";
    return this.#library.decode(ids, {
      skip_special_tokens: skipSpecialTokens,
      clean_up_tokenization_spaces: false,
    });
  }

  #check(id: number | undefined, index: number | null): void {
    if (id !== undefined && Number.isInteger(id) && id >= 0 && id < this.vocabSize) return;
    const place = index === null ? "" : ` at position ${index}`;
    throw new VerbatimError(
      "token_out_of_range",
      `Token id ${id}${place} is not an integer from 0 to ${this.vocabSize - 1}.`,
      { details: { id: id ?? null, index, vocab_size: this.vocabSize } },
    );
  }
}
