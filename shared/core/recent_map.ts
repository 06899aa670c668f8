/** A bounded map from text that forgets what has not been used for long, in two generations. It does not know what it holds. */

/** Keeps values by text. */
export class RecentMap<Value> {
  readonly #limit: number;
  #recent = new Map<string, Value>();
  #older = new Map<string, Value>();
  #weight = 0;

  /** Keeps what was used last up to a total weight of `limit`, and never more than twice that. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The value, or undefined where there is none any more. `weight` is that with which the entry was set. */
  get(key: string, weight = 1): Value | undefined {
    const value = this.#recent.get(key);
    if (value !== undefined) return value;
    const old = this.#older.get(key);
    if (old !== undefined) this.set(key, old, weight);
    return old;
  }

  /** Keeps a value; `weight` counts against the limit. */
  set(key: string, value: Value, weight = 1): void {
    if (this.#weight + weight > this.#limit) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#weight = 0;
    }
    this.#recent.set(key, value);
    this.#weight += weight;
  }
}
