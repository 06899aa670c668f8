/**
 * The next token of one sequence: the language model, or the null model that costs nothing. It knows no requests,
 * limits of length or stops.
 */

import type { LanguageModel } from "./language_model.ts";
import type { NextTokenLogits } from "./next_token_logits.ts";
import type { PrefixState } from "./prefix_state.ts";
import { keptIds, sampleToken, type SamplingLimits } from "./sampler.ts";

/** A logprob and its id. */
export type ScoredId = readonly [logprob: number, id: number];

/** Where a draw's randomness comes from. */
export interface RandomSource {
  readonly seed: number | null;
  readonly random: () => number;
}

/** One sequence. After `push` comes `predict`, then the reads. Logprobs are float32 values. */
export interface Predictor {
  push(id: number): void;
  /** Prepares the distribution after what was pushed, changed by `edit` where there is one. */
  predict(temperature: number, edit: ((logits: NextTokenLogits) => void) | null): void;
  logprob(id: number): number;
  /** The `count` likeliest ids, likeliest first. */
  top(count: number): ScoredId[];
  /** Draws an id within the limits. `seed` null: `random` decides; else the result is a function of seed and prefix. */
  sample(limits: SamplingLimits, source: RandomSource): number;
  /** The ids that `sample` draws from within these limits, likeliest first. */
  kept(limits: SamplingLimits): number[];
}

/** Predicts with the language model. */
export class ModelPredictor implements Predictor {
  readonly #model: LanguageModel;
  readonly #state: PrefixState;
  readonly #logits: NextTokenLogits;

  /** `state` belongs to this sequence alone. */
  constructor(model: LanguageModel, state: PrefixState) {
    this.#model = model;
    this.#state = state;
    this.#logits = model.buffer();
  }

  push(id: number): void {
    this.#state.push(id);
  }

  predict(temperature: number, edit: ((logits: NextTokenLogits) => void) | null): void {
    this.#model.logits(this.#state, this.#logits);
    edit?.(this.#logits);
    this.#logits.normalize(temperature);
  }

  logprob(id: number): number {
    return Math.fround(this.#logits.logprob(id));
  }

  top(count: number): ScoredId[] {
    const top: ScoredId[] = [];
    for (const run of this.#logits.runs()) {
      const logprob = Math.fround(this.#logits.logprobOfLogit(run.logit));
      for (let i = 0; i < run.count; i++) {
        if (top.length >= count) return top;
        top.push([logprob, run.id ?? this.#logits.tailId(run.tailClass, i)]);
      }
    }
    return top;
  }

  sample(limits: SamplingLimits, { seed, random }: RandomSource): number {
    return sampleToken(this.#logits, seed === null ? random() : this.#state.seededUnit(seed), limits);
  }

  kept(limits: SamplingLimits): number[] {
    return keptIds(this.#logits, limits);
  }
}

/** Says the same ids every time, then stops. For measuring everything but the model. */
export class NullPredictor implements Predictor {
  readonly #ids: Uint32Array;
  readonly #stopId: number;
  #said = 0;

  /** Says `ids`, then `stopId` for ever. */
  constructor(ids: Uint32Array, stopId: number) {
    this.#ids = ids;
    this.#stopId = stopId;
  }

  push(): void {}

  predict(): void {}

  logprob(): number {
    return -0.5;
  }

  top(count: number): ScoredId[] {
    return Array.from({ length: count }, (_, id) => [-0.5 - id, id]);
  }

  sample(): number {
    return this.#ids[this.#said++] ?? this.#stopId;
  }

  kept(): number[] {
    return [this.#ids[this.#said] ?? this.#stopId];
  }
}
