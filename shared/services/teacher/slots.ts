/** Work of which only so much may run at once. It does not know what the work is. */

/** A place, until it is disposed of. */
export type Slot = Disposable;

/** So many places; who finds none waits, in the order of coming. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** `count` is at least 1. */
  constructor(count: number) {
    this.#free = count;
  }

  /** A place. Rejects with the signal's reason when that aborts first. */
  async take(signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    let taken = true;
    return {
      [Symbol.dispose]: () => {
        if (taken) this.#give();
        taken = false;
      },
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => {
      this.#waiting.delete(wake);
      reject(signal.reason);
    };
    const wake = (): void => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    this.#waiting.add(wake);
    signal.addEventListener("abort", onAbort, { once: true });
    return promise;
  }

  /** The place goes to who waits longest. */
  #give(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
