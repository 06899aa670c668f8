/**
 * What a request's own parameters do to the logits before sampling: penalties, biases, the ban on stopping early.
 * Logprobs of sampled ids are taken after these edits, those of prompt ids before. It does not know of temperature.
 */

import type { NextTokenLogits } from "./next_token_logits.ts";

/** The parameters. */
export interface LogitEditOptions {
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly repetitionPenalty: number;
  readonly logitBias: ReadonlyMap<number, number>;
  /** Stop ids are impossible before so many ids. */
  readonly minNewTokens: number;
  readonly stopIds: Iterable<number>;
}

/** Edits of one request; counts what has been sampled. Penalties see sampled ids only, not the prompt. */
export class LogitEdits {
  readonly #options: LogitEditOptions;
  readonly #counts = new Map<number, number>();
  readonly #penalized: boolean;
  #sampled = 0;

  /** Whether any penalty is set decides whether ids are counted at all. */
  constructor(options: LogitEditOptions) {
    this.#options = options;
    this.#penalized = options.frequencyPenalty !== 0 || options.presencePenalty !== 0 ||
      options.repetitionPenalty !== 1;
  }

  /** Counts a sampled id. */
  add(id: number): void {
    this.#sampled++;
    if (this.#penalized) this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  /** Additive penalties, then the ban, then the multiplicative penalty, then biases. */
  apply(logits: NextTokenLogits): void {
    const { frequencyPenalty, presencePenalty, repetitionPenalty, logitBias, minNewTokens, stopIds } = this.#options;
    for (const [id, count] of this.#counts) {
      const logit = logits.get(id) - frequencyPenalty * count - presencePenalty;
      logits.set(id, logit < 0 ? logit * repetitionPenalty : logit / repetitionPenalty);
    }
    if (this.#sampled < minNewTokens) { for (const id of stopIds) logits.set(id, -Infinity); }
    for (const [id, bias] of logitBias) logits.set(id, logits.get(id) + bias);
  }
}
