/** The library's own encoder, for all vocabularies but byte-level ones. It is slower, and knows no plain spans by itself. */

import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import type { EncodeOptions } from "../../ports/tokenizer.ts";
import { AddedTokenSplitter } from "./hf_added_token_splitter.ts";
import type { LibrarySource } from "./hf_encoder.ts";

export class LibraryEncoder {
  readonly #source: LibrarySource;
  readonly #library: LibraryTokenizer;
  readonly #splitter: AddedTokenSplitter;
  /** Takes all added tokens for plain text; made when a message first writes one. */
  #withoutAddedTokens: LibraryTokenizer | null = null;

  constructor(source: LibrarySource, library = new LibraryTokenizer(source.tokenizerJson, source.tokenizerConfig)) {
    this.#source = source;
    this.#library = library;
    this.#splitter = new AddedTokenSplitter(source.addedTokens);
  }

  encode(written: string, options: EncodeOptions): Uint32Array<ArrayBuffer> {
    // The library would spell a lone surrogate in bytes where Hugging Face's own sees U+FFFD. Places stay as they are.
    const text = written.toWellFormed();
    const addSpecialTokens = options.addSpecialTokens ?? false;
    const sections = options.plainSpans === undefined ? null : this.#splitter.split(text, options);
    const all = sections === null ? null : this.#splitter.split(text);
    if (sections === null || sections.every((section, index) => section === all?.[index])) {
      return Uint32Array.from(this.#library.encode(text, { add_special_tokens: addSpecialTokens }).ids);
    }
    const frame = this.#library.encode("", { add_special_tokens: addSpecialTokens }).ids;
    const bare = this.#bareLibrary();
    const ids = sections.flatMap((section) =>
      typeof section === "string" ? bare.encode(section, { add_special_tokens: false }).ids : [section.id]
    );
    return Uint32Array.from([...frame, ...ids]);
  }

  #bareLibrary(): LibraryTokenizer {
    const { tokenizerJson, tokenizerConfig } = this.#source;
    return this.#withoutAddedTokens ??= new LibraryTokenizer({ ...tokenizerJson, added_tokens: [] }, tokenizerConfig);
  }
}
