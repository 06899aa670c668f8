/** Immutable token sequences that share their prefixes. They know nothing of text, turns or masks. */

/**
 * A series of token ids: a parent series and the ids appended to it. Appending never copies the prefix, and the JSON
 * text of a prefix is made once, so that a prompt of any length is sent at the cost of its newest part.
 */
export class TokenSeries {
  /** The series of no tokens. */
  static readonly EMPTY: TokenSeries = new TokenSeries(null, new Uint32Array(0));

  /** Number of tokens. */
  readonly length: number;
  readonly #parent: TokenSeries | null;
  readonly #own: Uint32Array;
  #json: string | null = null;

  private constructor(parent: TokenSeries | null, own: Uint32Array) {
    this.#parent = parent;
    this.#own = own;
    this.length = (parent?.length ?? 0) + own.length;
  }

  /** The series of these ids. The array is kept, not copied: do not write to it afterwards. */
  static of(ids: Uint32Array): TokenSeries {
    return ids.length === 0 ? TokenSeries.EMPTY : new TokenSeries(null, ids);
  }

  /** This series followed by `ids`. The array is kept, not copied: do not write to it afterwards. */
  append(ids: Uint32Array): TokenSeries {
    if (ids.length === 0) return this;
    return new TokenSeries(this.length === 0 ? null : this, ids);
  }

  /** All ids in one new array. */
  toArray(): Uint32Array {
    const all = new Uint32Array(this.length);
    let end = this.length - this.#own.length;
    all.set(this.#own, end);
    for (let node = this.#parent; node !== null; node = node.#parent) {
      end -= node.#own.length;
      all.set(node.#own, end);
    }
    return all;
  }

  /** The last id, or null of an empty series. */
  last(): number | null {
    return this.length === 0 ? null : this.#own[this.#own.length - 1]!;
  }

  /**
   * The ids as JSON text without the brackets: `1,2,3`. Kept on the series it was made for; the prefix it was made from
   * gives its own copy up, so that a long task keeps one text and not one a turn.
   */
  json(): string {
    if (this.#json !== null) return this.#json;
    const pending: TokenSeries[] = [];
    let known = this.#parent;
    while (known !== null && known.#json === null) {
      pending.push(known);
      known = known.#parent;
    }
    let text = known === null ? "" : known.#json ?? "";
    for (const own of [...pending.reverse().map((series) => series.#own), this.#own]) {
      if (own.length > 0) text += (text === "" ? "" : ",") + own.join(",");
    }
    if (known !== null) known.#json = null;
    this.#json = text;
    return text;
  }
}
