/** From sampled tokens to the assistant message, as they come. It knows neither engines nor tasks. */

import { StopStringCutter } from "../../core/stop_strings.ts";
import type { Finish, FinishReason } from "../../core/turn.ts";
import type { CompletionParser, ParsedCompletion, ParseDelta } from "../../ports/completion_parser.ts";
import type { IncrementalDecoder } from "../../ports/tokenizer.ts";

/** What a completion was when it ended. */
export interface ReadCompletion {
  /** Every sampled id, verbatim. */
  readonly ids: Uint32Array;
  /** One logprob an id, as the engine sent them. */
  readonly logprobs: readonly number[];
  /** The decoded text, special tokens kept, without its final stop. */
  readonly text: string;
  readonly parsed: ParsedCompletion;
  /** Tokens whose text belongs to reasoning; the markers around it do not. */
  readonly reasoningTokens: number;
  readonly finish: Finish;
  readonly finishReason: FinishReason;
  /** Whether a stop token, of the model or of the request, ended it; it is then the last id, and no part of the text. */
  readonly closed: boolean;
}

/** A piece of a completion that is final. */
export interface ReadPiece {
  readonly text: string;
  readonly deltas: readonly ParseDelta[];
}

/** What a reader needs. */
export interface CompletionReaderOptions {
  readonly decoder: IncrementalDecoder;
  readonly parser: CompletionParser;
  /** Tokens that may end the generation. */
  readonly stopTokenIds: ReadonlySet<number>;
  readonly stopStrings: readonly string[];
}

/** Reads one completion. */
export class CompletionReader {
  readonly #options: CompletionReaderOptions;
  readonly #cutter: StopStringCutter;
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #text: string[] = [];
  /** Where in the decoded text each token begins. */
  readonly #starts: number[] = [];
  #decoded = 0;
  /** A stop token whose text is not read yet: it is text only if more tokens follow. */
  #heldStop: number | null = null;

  constructor(options: CompletionReaderOptions) {
    this.#options = options;
    this.#cutter = new StopStringCutter(options.stopStrings);
  }

  /** Number of ids read. */
  get length(): number {
    return this.#ids.length;
  }

  /** Reads sampled ids; the text and the pieces of the message that are certain now. */
  push(ids: readonly number[], logprobs: readonly number[]): ReadPiece {
    let text = "";
    for (let k = 0; k < ids.length; k++) {
      const id = ids[k]!;
      this.#ids.push(id);
      this.#logprobs.push(logprobs[k]!);
      if (this.#heldStop !== null) text += this.#decode(this.#heldStop);
      this.#starts.push(this.#decoded);
      this.#heldStop = this.#options.stopTokenIds.has(id) ? id : null;
      if (this.#heldStop === null) text += this.#decode(id);
    }
    return this.#read(this.#cutter.push(text));
  }

  /** The end: the last piece and the whole. */
  finish(finish: Finish): ReadPiece & { completion: ReadCompletion } {
    const closed = finish.type === "stop" && this.#heldStop !== null;
    let tail = "";
    if (this.#heldStop !== null && !closed) tail += this.#decode(this.#heldStop);
    const rest = this.#options.decoder.finish();
    this.#decoded += rest.length;
    tail += rest;
    const matched = finish.type === "stop" && typeof finish.matched === "string" ? finish.matched : null;
    const last = this.#read(this.#cutter.push(tail) + this.#cutter.finish(matched));
    const deltas = [...last.deltas, ...this.#options.parser.finish()];
    const parsed = this.#options.parser.result();
    return {
      text: last.text,
      deltas,
      completion: {
        ids: Uint32Array.from(this.#ids),
        logprobs: this.#logprobs,
        text: this.#text.join(""),
        parsed,
        reasoningTokens: this.#countWithin(this.#options.parser.reasoningSpans()),
        finish,
        // Rule 12: only a stop becomes tool_calls, and only with a call.
        finishReason: finish.type === "stop" && parsed.toolCalls.length > 0 ? "tool_calls" : finish.type,
        closed,
      },
    };
  }

  #decode(id: number): string {
    const text = this.#options.decoder.push(id);
    this.#decoded += text.length;
    return text;
  }

  /** Tokens whose text touches one of the spans. One that ends no character yet stands where that character begins. */
  #countWithin(spans: readonly (readonly [start: number, end: number])[]): number {
    let count = 0;
    let span = 0;
    this.#starts.forEach((start, at) => {
      const end = Math.max(start + 1, this.#starts[at + 1] ?? this.#decoded);
      while (span < spans.length && spans[span]![1] <= start) span++;
      if (span < spans.length && spans[span]![0] < end) count++;
    });
    return count;
  }

  #read(text: string): ReadPiece {
    if (text === "") return { text, deltas: [] };
    this.#text.push(text);
    return { text, deltas: this.#options.parser.push(text) };
  }
}
