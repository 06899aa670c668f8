/** So many at once, the others in the order they came. It does not know what the slots are for. */

import { VerbatimError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";

/** Slots for statements: as many as there are connections, so that a statement that has one begins at once. */
export class PgSlots {
  readonly #clock: Clock;
  readonly #maxWaiting: number;
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(clock: Clock, options: { slots: number; maxWaiting: number }) {
    this.#clock = clock;
    this.#maxWaiting = options.maxWaiting;
    this.#free = options.slots;
  }

  /** Runs `work` in a slot; `not_ready` where none comes free within `waitMs`, or too many wait already. */
  async run<T>(waitMs: number, work: () => Promise<T>): Promise<T> {
    await this.#acquire(waitMs);
    try {
      return await work();
    } finally {
      this.#release();
    }
  }

  async #acquire(waitMs: number): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    if (this.#waiting.size >= this.#maxWaiting) throw busy(`${this.#waiting.size} statements wait`);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = new AbortController();
    const expired = this.#clock.sleep(waitMs, timer.signal).then(() => {
      // A slot that was handed over in the same moment is taken: the set tells.
      if (this.#waiting.delete(resolve)) throw busy(`no connection came free for ${waitMs} ms`);
      return promise;
    }, () => promise);
    this.#waiting.add(resolve);
    try {
      await Promise.race([promise, expired]);
    } finally {
      timer.abort();
    }
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

function busy(what: string): VerbatimError {
  return new VerbatimError("not_ready", `The store's database is busy: ${what}; try again later.`, { retryAfterS: 1 });
}
