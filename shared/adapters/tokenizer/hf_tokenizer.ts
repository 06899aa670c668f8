/**
 * A tokenizer from the files that Hugging Face models carry. It does not know where the files come from, and it never
 * cleans text up: decoded text is exactly what the tokens spell.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { EncodeOptions, IncrementalDecoder, Tokenizer } from "../../ports/tokenizer.ts";
import { EncodeQueue, type EncodeWorker, hostHasWorkers, startEncodeWorker } from "./hf_encode_queue.ts";
import type { Encoder } from "./hf_encoder.ts";
import { createCodec, type Decoding } from "./hf_codec.ts";
import { describeHfFiles, type HfDescription, type HfTokenizerFiles } from "./hf_files.ts";

export interface HfTokenizerOptions {
  /** Whether long texts go to a worker: `auto` (default) where the host has workers; `none` encodes all inline. */
  readonly worker?: "auto" | "none";
  /** Texts of more UTF-16 units than this are long. Default: what takes about ten milliseconds at most. */
  readonly longText?: number;
  /** Starts a worker. Default: the one beside this file. */
  readonly startWorker?: () => EncodeWorker;
}

/** Makes a tokenizer. Files that describe none are `invalid_request`, those of an unknown kind `unsupported`. */
export function createHfTokenizer(files: HfTokenizerFiles, options: HfTokenizerOptions = {}): Tokenizer {
  return new HfTokenizer(describeHfFiles(files), options);
}

type Kept = Pick<HfDescription, "specialIds" | "specialTokens" | "eosId" | "chatTemplate" | "modelMaxLength">;

class HfTokenizer implements Tokenizer {
  /** What is small: files are not held on to. */
  readonly #kept: Kept;
  readonly #encoder: Encoder;
  readonly #decoding: Decoding;
  readonly #fingerprint: () => string;
  readonly #queue: EncodeQueue | null;
  readonly #longText: number;
  readonly vocabSize: number;
  readonly addedTokens: ReadonlyMap<string, number>;

  constructor(description: HfDescription, options: HfTokenizerOptions) {
    const { specialIds, specialTokens, eosId, chatTemplate, modelMaxLength } = description;
    this.#kept = { specialIds, specialTokens, eosId, chatTemplate, modelMaxLength };
    this.vocabSize = description.tokens.length;
    this.addedTokens = new Map(description.addedTokens.map((token) => [token.content, token.id]));
    const codec = createCodec(description);
    this.#encoder = codec.encoder;
    this.#decoding = codec.decoding;
    this.#fingerprint = codec.fingerprint;
    this.#longText = options.longText ?? codec.longText;
    const inline = options.worker === "none" || (options.startWorker === undefined && !hostHasWorkers());
    this.#queue = inline ? null : new EncodeQueue(codec.source, options.startWorker ?? startEncodeWorker);
  }

  get specialIds(): ReadonlySet<number> {
    return this.#kept.specialIds;
  }

  get eosId(): number | null {
    return this.#kept.eosId;
  }

  get chatTemplate(): string | null {
    return this.#kept.chatTemplate;
  }

  get specialTokens(): Readonly<Record<string, string>> {
    return this.#kept.specialTokens;
  }

  get modelMaxLength(): number | null {
    return this.#kept.modelMaxLength;
  }

  get fingerprint(): string {
    return this.#fingerprint();
  }

  encode(text: string, options: EncodeOptions = {}): Uint32Array {
    return this.#encoder.encode(text, options);
  }

  encodeAsync(text: string, options: EncodeOptions & { readonly signal?: AbortSignal } = {}): Promise<Uint32Array> {
    const { signal, ...how } = options;
    if (this.#queue !== null && text.length > this.#longText) return this.#queue.encode(text, how, signal);
    return new Promise((resolve) => {
      signal?.throwIfAborted();
      resolve(this.#encoder.encode(text, how));
    });
  }

  decode(ids: ArrayLike<number>, options: { skipSpecialTokens?: boolean } = {}): string {
    for (let index = 0; index < ids.length; index++) this.#check(ids[index], index);
    return this.#decoding.decode(ids, options.skipSpecialTokens === true);
  }

  tokenBytes(id: number): Uint8Array | null {
    this.#check(id, null);
    return this.#decoding.tokenBytes(id);
  }

  decoder(): IncrementalDecoder {
    const decoder = this.#decoding.decoder();
    return {
      push: (id) => {
        this.#check(id, null);
        return decoder.push(id);
      },
      finish: () => decoder.finish(),
    };
  }

  close(): void {
    this.#queue?.close();
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
