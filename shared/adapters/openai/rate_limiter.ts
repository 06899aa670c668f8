/** Requests and tokens a minute, and requests at once, for one API. It does not know what is asked. */

import type { Clock } from "../../ports/clock.ts";

/** What an API allows. Infinity: no limit. */
export interface RateLimits {
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
  readonly maxConcurrency: number;
}

/** The right to send one request. Dispose of it when the request has ended. */
export interface Permit extends Disposable {
  /** What the request really took, in the place of what was guessed. */
  settle(tokens: number): void;
}

interface Sent {
  readonly atMs: number;
  tokens: number;
}

const WINDOW_MS = 60_000;

/** Lets requests through in the order they came, at most so many and so large in any minute. */
export class RateLimiter {
  readonly #limits: RateLimits;
  readonly #clock: Clock;
  /** Those of the last minute, oldest first. */
  #sent: Sent[] = [];
  #running = 0;
  #heldUntilMs = 0;
  /** Resolves when the last one that came has gone through or given up. */
  #last: Promise<void> = Promise.resolve();
  #ended: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(limits: RateLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /**
   * Waits for the right to send a request of about so many tokens. One that is larger than a minute's worth goes when
   * nothing else was sent. Rejects with the signal's reason when that aborts first.
   */
  async acquire(tokens: number, signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted();
    const before = this.#last;
    const through = Promise.withResolvers<void>();
    // Who gives up early still lets the next one wait for those before.
    this.#last = before.then(() => through.promise);
    try {
      await abortable(before, signal);
      for (let waitMs = this.#waitMs(tokens); waitMs > 0; waitMs = this.#waitMs(tokens)) {
        if (waitMs === Infinity) await abortable(this.#ended.promise, signal);
        else await this.#clock.sleep(waitMs, signal);
      }
      return this.#take(tokens);
    } finally {
      through.resolve();
    }
  }

  /** Nothing is sent before this time: the API has asked for a rest. */
  holdUntil(atMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, atMs);
  }

  #take(tokens: number): Permit {
    const sent: Sent = { atMs: this.#clock.now(), tokens };
    this.#sent.push(sent);
    this.#running++;
    let runs = true;
    return {
      settle(real) {
        sent.tokens = real;
      },
      [Symbol.dispose]: () => {
        if (!runs) return;
        runs = false;
        this.#running--;
        const ended = this.#ended;
        this.#ended = Promise.withResolvers();
        ended.resolve();
      },
    };
  }

  /** How long until the next look; 0: now it may go; Infinity: when a request has ended. */
  #waitMs(tokens: number): number {
    const now = this.#clock.now();
    if (this.#heldUntilMs > now) return this.#heldUntilMs - now;
    const { requestsPerMinute, tokensPerMinute, maxConcurrency } = this.#limits;
    if (this.#running >= maxConcurrency) return Infinity;
    this.#sent = this.#sent.filter(({ atMs }) => atMs + WINDOW_MS > now);
    const [oldest] = this.#sent;
    if (oldest === undefined) return 0;
    const used = this.#sent.reduce((sum, sent) => sum + sent.tokens, 0);
    if (this.#sent.length < requestsPerMinute && used + tokens <= tokensPerMinute) return 0;
    return oldest.atMs + WINDOW_MS - now;
  }
}

async function abortable(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
