/** One generation that several clients may wait for. It runs at the engine's pace, whoever reads it and however slowly. */

import { VerbatimError } from "../../core/errors.ts";
import type { AssistantMessage } from "../../core/message.ts";
import type { TokenSeries } from "../../core/token_series.ts";
import type { FinishReason } from "../../core/turn.ts";
import type { TokensChunk, TopLogprobs } from "../../ports/engine.ts";

/** A piece of an answer, final when it is given. */
export type AnswerDelta =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "content"; readonly text: string }
  | {
    readonly type: "tool_call";
    readonly index: number;
    readonly id: string;
    readonly name: string;
    readonly arguments: string;
  };

/** A whole answer, in no dialect. */
export interface Answer {
  /** The committed turn, or null where nothing is recorded. */
  readonly turn: number | null;
  /** Hex digits from which a dialect makes its ids, the same when it is replayed. */
  readonly answerId: string;
  readonly createdAtS: number;
  readonly model: string;
  readonly reply: AssistantMessage;
  readonly finishReason: FinishReason;
  /** The stop string that ended it, or null. */
  readonly stopString: string | null;
  readonly promptTokens: number;
  readonly cachedTokens: number | null;
  readonly reasoningTokens: number | null;
  /** What the engine was given; empty where it was given text. */
  readonly prompt: TokenSeries;
  /** Their number; a text-level backend tells no more of them. */
  readonly completionTokens: number;
  readonly completion: Uint32Array;
  /** One a token; null where nobody sampled them: a teacher's turn. */
  readonly logprobs: ArrayLike<number> | null;
  /** One list a token, where they were asked for. They are shown once and not kept: a replayed answer has none. */
  readonly topLogprobs: readonly TopLogprobs[] | null;
}

/** What a waiting client sees. `started` comes with the first sampled token, `end` after the commit. */
export type CallEvent =
  | {
    readonly type: "started";
    readonly answerId: string;
    readonly createdAtS: number;
    readonly model: string;
    readonly promptTokens: number;
  }
  /** Sampled tokens, before what they say; a stream that is replayed, or the teacher's, has none: its `end` has them all. */
  | TokensChunk
  | { readonly type: "delta"; readonly delta: AnswerDelta }
  | { readonly type: "end"; readonly answer: Answer };

/** One client's place at a call. Iterate it once. */
export interface Waiter extends AsyncIterable<CallEvent> {
  /** Stops waiting. When the last waiter has left, the generation is aborted. */
  leave(): void;
}

/** A generation under way. */
export class SharedCall {
  #events: CallEvent[] = [];
  readonly #abort = new AbortController();
  #waiters = 0;
  #state: "running" | "ended" | "failed" = "running";
  #error: unknown;
  #wake: PromiseWithResolvers<void> = Promise.withResolvers();
  #shown = false;

  /** Aborts when the last waiter has left, or `cancel` was called. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether a client was shown a part of the answer. */
  get shown(): boolean {
    return this.#shown;
  }

  /** Takes back every event, so that another answer can take their place; false where a client was shown a part. */
  takeBack(): boolean {
    if (this.#shown) return false;
    this.#events = [];
    return true;
  }

  /** Aborts the generation for everyone; waiters see `reason`. */
  cancel(reason: unknown): void {
    this.#abort.abort(reason);
  }

  /** Adds an event. */
  emit(event: CallEvent): void {
    if (this.#state !== "running") return;
    this.#events.push(event);
    if (event.type === "end") this.#state = "ended";
    this.#signalAll();
  }

  /** Ends the call with a failure, which every waiter gets. */
  fail(error: unknown): void {
    if (this.#state !== "running") return;
    this.#state = "failed";
    this.#error = error;
    this.#signalAll();
  }

  /** Joins; the waiter sees every event from the first on. */
  join(options: { streaming: boolean }): Waiter {
    this.#waiters++;
    let left = false;
    const leave = () => {
      if (left) return;
      left = true;
      this.#waiters--;
      if (this.#waiters === 0 && this.#state === "running") {
        this.#abort.abort(new DOMException("The last waiting client is gone", "AbortError"));
      }
    };
    return {
      leave,
      [Symbol.asyncIterator]: () => this.#follow(leave, options.streaming),
    };
  }

  async *#follow(leave: () => void, streaming: boolean): AsyncGenerator<CallEvent> {
    try {
      let events = this.#events;
      for (let next = 0;;) {
        if (events !== this.#events) [events, next] = [this.#events, 0];
        const event = events[next];
        if (event !== undefined) {
          next++;
          if (streaming && event.type !== "end") this.#shown = true;
          yield event;
          continue;
        }
        if (this.#state === "ended") return;
        if (this.#state === "failed") throw this.#error;
        await this.#wake.promise;
      }
    } finally {
      leave();
    }
  }

  #signalAll(): void {
    const wake = this.#wake;
    this.#wake = Promise.withResolvers();
    wake.resolve();
  }
}

/** What ended a call whose signal was aborted: the reason, where it is a failure of its own, else that nobody waits. */
export function abortError(reason: unknown): VerbatimError {
  if (reason instanceof VerbatimError) return reason;
  return new VerbatimError("client_gone", "The last waiting client hung up; the generation was aborted", {
    cause: reason,
  });
}

/** Waits for the whole answer. The signal ends the waiting, not the generation (unless nobody else waits). */
export async function wholeAnswer(waiter: Waiter, signal: AbortSignal): Promise<Answer> {
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => {});
  const onAbort = () => {
    waiter.leave();
    gone.reject(signal.reason);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([gone.promise, lastEvent(waiter)]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function lastEvent(waiter: Waiter): Promise<Answer> {
  for await (const event of waiter) {
    if (event.type === "end") return event.answer;
  }
  throw new Error("A call ended without an answer");
}
