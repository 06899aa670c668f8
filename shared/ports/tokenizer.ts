/** Text to token ids and back, for one vocabulary. Adapters: hf_tokenizer, transformers_tokenizer (hub ids). */

/** Turns a stream of ids into text without ever splitting a character: what is returned is final. */
export interface IncrementalDecoder {
  /** The text that is certain after this id; `""` while a character is incomplete. */
  push(id: number): string;
  /** The rest: an incomplete character becomes U+FFFD, as in a whole decode. */
  finish(): string;
}

/** Tokens, and the stretches of a text (as in `plainSpans`) in which they are plain text. */
export interface TokenGuard {
  readonly ids: ReadonlySet<number>;
  readonly spans: readonly number[];
}

/** How a text is encoded. */
export interface EncodeOptions {
  /** Whether the tokens that frame a text for this model are put around it. Default false. */
  readonly addSpecialTokens?: boolean;
  /**
   * Stretches of the text, ascending and apart, each a start and an end in UTF-16 units: a special token that begins or
   * ends in one is plain text.
   */
  readonly plainSpans?: readonly number[];
  /** Added tokens that are plain text where they touch these stretches though they are not special. */
  readonly guards?: readonly TokenGuard[];
}

export interface Tokenizer {
  /** Ids are in [0, vocabSize). */
  readonly vocabSize: number;
  /** Text of each added token (special or not) to its id. */
  readonly addedTokens: ReadonlyMap<string, number>;
  /** Ids of tokens marked special. */
  readonly specialIds: ReadonlySet<number>;
  /** The configured end-of-sequence id, or null. */
  readonly eosId: number | null;
  /** The configured chat template, or null. */
  readonly chatTemplate: string | null;
  /** `bos_token`, `eos_token` and the like, as templates see them. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** The model's own length limit as configured, or null. */
  readonly modelMaxLength: number | null;
  /** SHA-256 over vocabulary, merges and added tokens: equal fingerprints mean equal ids for all text. */
  readonly fingerprint: string;
  /** Added tokens in the text become their ids. */
  encode(text: string, options?: EncodeOptions): Uint32Array;
  /** As `encode`, off the event loop where the text is long and the host has workers. */
  encodeAsync(text: string, options?: EncodeOptions & { readonly signal?: AbortSignal }): Promise<Uint32Array>;
  /** The text of these ids. An id out of range is `token_out_of_range`. */
  decode(ids: ArrayLike<number>, options?: { skipSpecialTokens?: boolean }): string;
  /** The bytes of one token, which need not be whole characters; null where the vocabulary does not tell. An id out of range is `token_out_of_range`. */
  tokenBytes(id: number): Uint8Array | null;
  /** Decodes ids as they come, special tokens kept. The pieces joined equal `decode` of all ids. */
  decoder(): IncrementalDecoder;
  /** Releases workers. */
  close(): void;
}
