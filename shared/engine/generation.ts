/**
 * The computation of one request: prefill with input logprobs, then one id a step. It knows the index law of input
 * logprobs and what output logprobs are relative to; it knows no time, no queue and no wire.
 */

import type { Tokenizer } from "../ports/tokenizer.ts";
import { FinishDetector, type FinishReason } from "./finish_reason.ts";
import type { GenerateItem } from "./generate_body.ts";
import { LogitEdits } from "./logit_edits.ts";
import { OutputText } from "./output_text.ts";
import type { Predictor, ScoredId } from "./predictor.ts";
import type { SamplingOptions } from "./sampling_options.ts";
import { GrammarState, type TokenGrammar } from "./token_grammar.ts";

/** `[logprob, id, text]` as on the wire; a logprob is null where none can be. */
export type LogprobEntry = [logprob: number | null, id: number, text: string | null];

/** Logprobs of one side, by position. The two last are empty unless asked for; a null row is the first position's. */
export interface LogprobRows {
  readonly tokens: LogprobEntry[];
  readonly top: (LogprobEntry[] | null)[];
  readonly chosen: (LogprobEntry[] | null)[];
}

/** What a generation works on. */
export interface GenerationInput {
  readonly prompt: Uint32Array;
  readonly item: GenerateItem;
  readonly options: SamplingOptions;
  /** After clipping to the context. */
  readonly maxNewTokens: number;
  /** Whether it is noted which ids each token was chosen from. */
  readonly notesKeptIds: boolean;
  readonly grammar: TokenGrammar | null;
}

/** One request's computation. */
export class Generation {
  readonly input: GenerationInput;
  readonly outputIds: number[] = [];
  readonly inputRows: LogprobRows = { tokens: [], top: [], chosen: [] };
  readonly outputRows: LogprobRows = { tokens: [], top: [], chosen: [] };
  /** By output position, where they are noted. */
  readonly keptIds: number[][] = [];
  readonly text: OutputText;
  readonly #predictor: Predictor;
  readonly #tokenizer: Tokenizer;
  readonly #detector: FinishDetector;
  readonly #edits: LogitEdits;
  readonly #grammar: GrammarState | null;
  readonly #random: () => number;
  #prefilled = 0;

  /** `stopIds` are the model's own; `random` draws from [0, 1). */
  constructor(input: GenerationInput, parts: {
    predictor: Predictor;
    tokenizer: Tokenizer;
    stopIds: ReadonlySet<number>;
    random: () => number;
  }) {
    const { options } = input;
    this.input = input;
    this.#predictor = parts.predictor;
    this.#tokenizer = parts.tokenizer;
    this.#random = parts.random;
    this.text = new OutputText(options, parts.tokenizer);
    this.#detector = new FinishDetector(options, { ...parts, maxNewTokens: input.maxNewTokens });
    const stopIds = parts.stopIds.union(options.stopTokenIds);
    this.#edits = new LogitEdits({ ...options, stopIds });
    this.#grammar = input.grammar === null ? null : new GrammarState(input.grammar, stopIds);
  }

  /** Reads up to `most` further prompt ids; true when the prompt is read. Input logprobs are raw: T = 1, no edits. */
  prefill(most: number): boolean {
    const { prompt, item } = this.input;
    const start = item.returnLogprob && item.logprobStartLen >= 0 ? item.logprobStartLen : prompt.length;
    const end = Math.min(prompt.length, this.#prefilled + most);
    for (; this.#prefilled < end; this.#prefilled++) {
      const id = prompt[this.#prefilled]!;
      if (this.#prefilled === start) this.#record(this.inputRows, id, { first: true });
      if (this.#prefilled > start) {
        this.#predictor.predict(1, null);
        this.#record(this.inputRows, id, { first: false });
      }
      this.#predictor.push(id);
    }
    return this.#prefilled === prompt.length;
  }

  /** Samples one id; the natural end after it, or null. */
  step(): FinishReason | null {
    const { item, options } = this.input;
    this.#predictor.predict(options.temperature, (logits) => {
      this.#edits.apply(logits);
      this.#grammar?.apply(logits);
    });
    if (this.input.notesKeptIds) this.keptIds.push(this.#predictor.kept(options));
    const id = this.#predictor.sample(options, { seed: options.samplingSeed, random: this.#random });
    if (item.returnLogprob) this.#record(this.outputRows, id, { first: false });
    this.#predictor.push(id);
    this.#edits.add(id);
    this.#grammar?.push(id);
    this.outputIds.push(id);
    this.text.push(id);
    return this.#detector.find(this.outputIds);
  }

  #record(rows: LogprobRows, id: number, { first }: { first: boolean }): void {
    const { topLogprobsNum, tokenIdsLogprob } = this.input.item;
    rows.tokens.push(first ? [null, id, this.#textOf(id)] : this.#entry([this.#predictor.logprob(id), id]));
    if (topLogprobsNum > 0) {
      rows.top.push(first ? null : this.#predictor.top(topLogprobsNum).map((scored) => this.#entry(scored)));
    }
    if (tokenIdsLogprob !== null) {
      const row = (): LogprobEntry[] =>
        tokenIdsLogprob.map((wanted) => this.#entry([this.#predictor.logprob(wanted), wanted]));
      rows.chosen.push(first ? null : row());
    }
  }

  #entry([logprob, id]: ScoredId): LogprobEntry {
    return [logprob, id, this.#textOf(id)];
  }

  #textOf(id: number): string | null {
    return this.input.item.returnTextInLogprobs ? this.#tokenizer.decode([id]) : null;
  }
}
