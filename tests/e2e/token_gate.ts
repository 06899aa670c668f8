/** Lets a test decide when the engine samples: no token leaves before the gate lets it. */

import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";

/** A gate before every token of every request. It is open at first. */
export class TokenGate {
  #closed = false;
  #waiting: (() => void)[] = [];

  /** Options of an engine behind this gate. */
  readonly engine: Partial<EmbeddedEngineOptions> = {
    firstTokenDelayMs: 1,
    tokenDelayMs: 1,
    sleep: (_ms, signal) => this.#pass(signal),
  };

  /** From now on tokens wait. */
  close(): void {
    this.#closed = true;
  }

  /** Tokens wait no more. */
  open(): void {
    this.#closed = false;
    for (const pass of this.#waiting.splice(0)) pass();
  }

  /** Requests that wait for their next token. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Lets every waiting request sample one token. */
  step(): void {
    for (const pass of this.#waiting.splice(0)) pass();
  }

  #pass(signal: AbortSignal | undefined): Promise<void> {
    if (!this.#closed) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      signal?.addEventListener("abort", () => {
        this.#waiting = this.#waiting.filter((pass) => pass !== resolve);
        reject(signal.reason);
      }, { once: true });
    });
  }
}
