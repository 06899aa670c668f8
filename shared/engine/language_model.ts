/**
 * The embedded engine's language model: next-token logits as a fixed function of the preceding ids alone. README.md
 * states the formula. It does not sample, and does not know of requests, penalties or temperature.
 */

import { mix, unit } from "./hashing.ts";
import { NextTokenLogits, TAIL_CLASSES } from "./next_token_logits.ts";
import type { PrefixState } from "./prefix_state.ts";

/** Candidates of a position, at most. */
const CANDIDATES = 32;
/** A candidate's logit is uniform in [0, SPREAD). */
const SPREAD = 4;
/** Mean of exp(uniform in [0, SPREAD)): what one candidate weighs on average. */
const MEAN_WEIGHT = (Math.exp(SPREAD) - 1) / SPREAD;
/** The tail's weight relative to the candidates', were every id in the likeliest class. */
const TAIL_WEIGHT = 1e-3;
/** Each class of the tail is this much less likely than the one before. */
const TAIL_STEP = 0.5;
/** Log odds of the stop token right after a turn's start, their growth by token, and their limit. */
const STOP_ODDS = { first: -6.2, growth: 0.085, limit: -2.1 } as const;

/** What the distribution is made of. */
export interface LanguageModelOptions {
  readonly vocabSize: number;
  /** Two models of different seeds are different models. */
  readonly seed: number;
  /** The token that ends a turn, or null: turns then end by length alone. */
  readonly stopId: number | null;
  /** Ids the candidates are chosen from; at least one, the stop token not among them. */
  readonly pool: Uint32Array;
}

/** The model. `logits` fills a buffer that is made by `buffer` and reused from position to position. */
export class LanguageModel {
  readonly vocabSize: number;
  /** As in the options; with another one it is another model from the next position on. */
  seed: number;
  readonly #options: LanguageModelOptions;
  readonly #candidates: number;
  readonly #stride: number;
  readonly #weight: number;
  readonly #levels: Float64Array;

  /** Does no work that grows with the vocabulary. */
  constructor(options: LanguageModelOptions) {
    this.#options = options;
    this.seed = options.seed;
    this.vocabSize = options.vocabSize;
    this.#candidates = Math.min(CANDIDATES, options.pool.length);
    this.#stride = Math.floor(options.pool.length / this.#candidates);
    this.#weight = Math.log(this.#candidates * MEAN_WEIGHT);
    this.#levels = Float64Array.from(
      { length: TAIL_CLASSES },
      (_, tailClass) => this.#weight + Math.log(TAIL_WEIGHT / options.vocabSize) - TAIL_STEP * tailClass,
    );
  }

  /** A buffer for `logits`. */
  buffer(): NextTokenLogits {
    return new NextTokenLogits(this.vocabSize, this.#levels);
  }

  /** The logits after the prefix that `state` has seen. `normalize` is left to the caller. */
  logits(state: PrefixState, out: NextTokenLogits): void {
    const { pool, stopId } = this.#options;
    const context = mix(
      mix(mix(mix(mix(this.seed, state.last(3)), state.last(2)), state.last(1)), state.last(0)),
      0x6b,
    );
    out.reset(context);
    for (let slot = 0; slot < this.#candidates; slot++) {
      // One candidate from each stretch of the pool: they differ by construction.
      const hash = mix(context, slot);
      const index = slot * this.#stride + hash % this.#stride;
      out.add(pool[index]!, SPREAD * unit(mix(hash, 0x1f)));
    }
    if (stopId !== null) {
      const odds = Math.min(STOP_ODDS.limit, STOP_ODDS.first + STOP_ODDS.growth * state.sinceBoundary);
      out.add(stopId, this.#weight + odds);
    }
    const scripted = state.scripted();
    if (scripted !== null) out.set(scripted.id, this.#weight + scripted.sharpness);
  }
}
