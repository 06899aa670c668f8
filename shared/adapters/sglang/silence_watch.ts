/** Ends a call that has been silent for too long. It does not know what is called. */

import type { Clock } from "../../ports/clock.ts";
import { EngineFailure } from "./engine_failure.ts";

/** A stretch in which silence is expected: it does not count, and what was silent before it counts anew after it. */
export interface Hold {
  /** When the last one ended, epoch milliseconds; 0: there was none. */
  readonly liftedAtMs: number;
  /** Resolves when none is on, at once where that is so; rejects when the signal aborts first. */
  lifted(signal: AbortSignal): Promise<void>;
}

/** Ends the wait; made once, since an abort without a reason makes an error each time. */
const OVER = new Error("The call is over");

/** Watches one call from its beginning until `end`. */
export class SilenceWatch {
  readonly #clock: Clock;
  readonly #idleTimeoutMs: number;
  readonly #hold: Hold | null;
  readonly #silence = new AbortController();
  readonly #over = new AbortController();
  #heardAtMs: number;

  constructor(clock: Clock, idleTimeoutMs: number, hold: Hold | null = null) {
    this.#clock = clock;
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#hold = hold;
    this.#heardAtMs = clock.now();
    this.#watch().catch(() => {});
  }

  /** Aborts after the longest silence; its reason is an `EngineFailure` that says so. */
  get signal(): AbortSignal {
    return this.#silence.signal;
  }

  /** Something was heard. It costs nothing: the timer runs on and then sleeps for what is left. */
  heard(): void {
    this.#heardAtMs = this.#clock.now();
  }

  /** The call is over. */
  end(): void {
    this.#over.abort(OVER);
  }

  async #watch(): Promise<void> {
    for (let leftMs = this.#idleTimeoutMs; leftMs > 0;) {
      await this.#clock.sleep(leftMs, this.#over.signal);
      await this.#hold?.lifted(this.#over.signal);
      const sinceMs = Math.max(this.#heardAtMs, this.#hold?.liftedAtMs ?? 0);
      leftMs = sinceMs + this.#idleTimeoutMs - this.#clock.now();
    }
    const seconds = this.#idleTimeoutMs / 1000;
    this.#silence.abort(
      new EngineFailure("silent", `The engine was silent for ${seconds} s`, { details: { idle_timeout_s: seconds } }),
    );
  }
}
