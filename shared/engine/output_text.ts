/**
 * The text of a growing output as SGLang shows it: characters whole, special tokens left out on demand, and nothing
 * shown that may yet turn out to be a stop string. It does not decide when an output ends.
 */

import type { IncrementalDecoder, Tokenizer } from "../ports/tokenizer.ts";
import type { FinishReason } from "./finish_reason.ts";
import type { SamplingOptions } from "./sampling_options.ts";

/** Text of one output. */
export class OutputText {
  readonly #tokenizer: Tokenizer;
  readonly #decoder: IncrementalDecoder;
  readonly #options: SamplingOptions;
  readonly #specialIds: ReadonlySet<number>;
  #text = "";
  #ended: string | null = null;
  /** Length of the text that may be shown after n ids, n from 0. */
  readonly #shown: number[] = [0];

  /** An output without ids. */
  constructor(options: SamplingOptions, tokenizer: Tokenizer) {
    this.#options = options;
    this.#tokenizer = tokenizer;
    this.#decoder = tokenizer.decoder();
    this.#specialIds = options.skipSpecialTokens ? tokenizer.specialIds : new Set();
  }

  /** Appends an id. */
  push(id: number): void {
    if (!this.#specialIds.has(id)) this.#text += this.#decoder.push(id);
    this.#shown.push(this.#text.length - heldBack(this.#text, this.#options.stop));
  }

  /** Ends the output of these ids: the last, incomplete character, and the cut before what matched. */
  end(finish: FinishReason, ids: readonly number[]): void {
    const { noStopTrim, skipSpecialTokens } = this.#options;
    const matched = finish.type === "stop" ? finish.matched : null;
    // A matched id of 0 counts as nothing matched and stays, as in SGLang.
    if (typeof matched === "number" && matched !== 0 && !noStopTrim) {
      this.#ended = this.#tokenizer.decode(ids.slice(0, -1), { skipSpecialTokens });
      return;
    }
    const text = this.#text + this.#decoder.finish();
    const at = typeof matched === "string" ? text.indexOf(matched) : -1;
    if (at < 0) this.#ended = text;
    else this.#ended = text.slice(0, noStopTrim ? at + String(matched).length : at);
  }

  /** What may be shown after `count` ids. */
  shown(count: number): string {
    return this.#text.slice(0, this.#shown[count] ?? 0);
  }

  /** The whole text after the end, or what may be shown so far. */
  get whole(): string {
    return this.#ended ?? this.shown(this.#shown.length - 1);
  }
}

/** Length of the longest end of `text` that is a beginning of a stop string. */
function heldBack(text: string, stops: readonly string[]): number {
  let held = 0;
  for (const stop of stops) {
    for (let length = Math.min(stop.length, text.length); length > held; length--) {
      if (text.endsWith(stop.slice(0, length))) {
        held = length;
        break;
      }
    }
  }
  return held;
}
