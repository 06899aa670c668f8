/** Work under one name in the order it came, whatever else goes on. It does not know what the work is. */

/** Orders of many names, each kept only while it has work. */
export class PgOrder {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs `work` once all that came before under this name has ended, well or badly. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = this.#last.get(name);
    this.#last.set(name, promise);
    try {
      await before;
      return await work();
    } finally {
      resolve();
      if (this.#last.get(name) === promise) this.#last.delete(name);
    }
  }
}
