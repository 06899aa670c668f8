/** How an SGLang request ends, in its own shapes, and the detection of a natural end. It knows no aborts' causes. */

import type { Tokenizer } from "../ports/tokenizer.ts";
import type { SamplingOptions } from "./sampling_options.ts";

/** `meta_info.finish_reason`. The two last fields of an abort are missing where it was aborted in the queue. */
export type FinishReason =
  | { readonly type: "stop"; readonly matched: number | string }
  | { readonly type: "length"; readonly length: number }
  | {
    readonly type: "abort";
    readonly message: string;
    readonly status_code?: number | null;
    readonly err_type?: string | null;
  };

/** An abort by the user of a running request. */
export const ABORTED: FinishReason = { type: "abort", message: "Aborted", status_code: null, err_type: null };

/** Looks for the end after each sampled id. */
export class FinishDetector {
  readonly #options: SamplingOptions;
  readonly #tokenizer: Tokenizer;
  readonly #stopIds: ReadonlySet<number>;
  readonly #maxNewTokens: number;
  readonly #tail: number;

  /** `stopIds` are the model's own; `maxNewTokens` is the limit after clipping to the context. */
  constructor(
    options: SamplingOptions,
    model: { tokenizer: Tokenizer; stopIds: ReadonlySet<number>; maxNewTokens: number },
  ) {
    this.#options = options;
    this.#tokenizer = model.tokenizer;
    this.#stopIds = model.stopIds;
    this.#maxNewTokens = model.maxNewTokens;
    const longest = options.stop.map((stop) => model.tokenizer.encode(stop, { addSpecialTokens: false }).length);
    // A regular expression has no length of its own; SGLang bounds it by its pattern, here the whole output counts.
    this.#tail = options.stopRegex.length > 0 ? Infinity : Math.max(0, ...longest) + 1;
  }

  /** The end after the last of `ids`, or null. Strings count before tokens, tokens before the length. */
  find(ids: readonly number[]): FinishReason | null {
    const { stop, stopRegex, ignoreEos, stopTokenIds } = this.#options;
    if (stop.length > 0 || stopRegex.length > 0) {
      const tail = this.#tokenizer.decode(this.#tail < ids.length ? ids.slice(-this.#tail) : ids);
      for (const wanted of stop) if (tail.includes(wanted)) return { type: "stop", matched: wanted };
      for (const { source, expression } of stopRegex) {
        if (expression.test(tail)) return { type: "stop", matched: source };
      }
    }
    const last = ids.at(-1);
    if (last !== undefined && !ignoreEos && (this.#stopIds.has(last) || stopTokenIds.has(last))) {
      return { type: "stop", matched: last };
    }
    return ids.length >= this.#maxNewTokens ? { type: "length", length: this.#maxNewTokens } : null;
  }
}
