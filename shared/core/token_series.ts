/** Immutable token sequences that share their prefixes. They know nothing of text, turns or masks. */

/**
 * A series of token ids: a parent series and the ids appended to it. Appending never copies the prefix, and the JSON
 * text of a prefix is made once, so that a prompt of any length is sent at the cost of copying bytes.
 */
export class TokenSeries {
  /** The series of no tokens. */
  static readonly EMPTY: TokenSeries = new TokenSeries(null, new Uint32Array(0));

  /** Number of tokens. */
  readonly length: number;
  readonly #parent: TokenSeries | null;
  readonly #own: Uint32Array;
  /** The text of `#own`, once it was asked for. */
  #json: Uint8Array | null = null;
  /** The text of the ids after `before`, up to and with the own ones. */
  #joined: { readonly text: Uint8Array; readonly before: TokenSeries | null } | null = null;

  /** The highest id, once it was asked for. */
  #highest: number | null = null;

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

  /** The highest id, or -1 of an empty series. Each series keeps its own, so that only what is new is looked at. */
  get highest(): number {
    return TokenSeries.#highestOf(this);
  }

  static #highestOf(series: TokenSeries): number {
    const unknown: TokenSeries[] = [];
    let node: TokenSeries | null = series;
    for (; node !== null && node.#highest === null; node = node.#parent) unknown.push(node);
    let highest = node === null ? -1 : node.#highest ?? -1;
    for (let k = unknown.length - 1; k >= 0; k--) {
      for (const id of unknown[k]!.#own) if (id > highest) highest = id;
      unknown[k]!.#highest = highest;
    }
    return highest;
  }

  /**
   * The text `before`, the ids as JSON text without brackets (`1,2,3`), the text `after`: in UTF-8, in one new array.
   * Each series keeps the text of its own ids, so that a prefix is spelled out once, however many prompts begin with it.
   */
  jsonBetween(before: string, after: string): Uint8Array<ArrayBuffer> {
    const parts = TokenSeries.#texts(this);
    const encoder = new TextEncoder();
    const [head, tail] = [encoder.encode(before), encoder.encode(after)];
    const bytes = new Uint8Array(head.length + joinedLength(parts) + tail.length);
    bytes.set(head);
    joinInto(bytes, head.length, parts);
    bytes.set(tail, bytes.length - tail.length);
    return bytes;
  }

  /** The texts that make up a series, the last first. Where they have become many, old ones are joined. */
  static #texts(series: TokenSeries): Uint8Array[] {
    const parts: Uint8Array[] = [];
    const single: TokenSeries[] = [];
    for (let node: TokenSeries | null = series; node !== null;) {
      if (node.#joined !== null) {
        parts.push(node.#joined.text);
        node = node.#joined.before;
      } else {
        parts.push(node.#ownJson());
        single.push(node);
        node = node.#parent;
      }
    }
    // Short texts of many turns cost more to put together than their bytes do. A series in their midst spells its own anew.
    if (single.length >= 2 * JOINED_TEXTS) {
      const nodes = single.slice(-JOINED_TEXTS);
      const texts = nodes.map((node) => node.#ownJson());
      const text = new Uint8Array(joinedLength(texts));
      joinInto(text, 0, texts);
      nodes[0]!.#joined = { text, before: nodes.at(-1)!.#parent };
      for (const node of nodes) node.#json = null;
    }
    return parts;
  }

  /** Only the series of no tokens has no ids of its own, and it is nobody's parent. */
  #ownJson(): Uint8Array {
    return this.#json ??= spelledOut(this.#own);
  }
}

const COMMA = 44;
const ZERO = 48;
/** So many short texts become one. */
const JOINED_TEXTS = 32;

function joinedLength(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, parts.length - 1);
}

/** Writes texts with commas between them, the last first. */
function joinInto(bytes: Uint8Array, at: number, parts: readonly Uint8Array[]): void {
  for (let k = parts.length - 1; k >= 0; k--) {
    bytes.set(parts[k]!, at);
    at += parts[k]!.length;
    if (k > 0) bytes[at++] = COMMA;
  }
}

/** The ids in decimal, commas between them, as ASCII. */
function spelledOut(ids: Uint32Array): Uint8Array {
  let at = Math.max(0, ids.length - 1);
  for (let k = 0; k < ids.length; k++) at += digitsOf(ids[k]!);
  const bytes = new Uint8Array(at);
  for (let k = ids.length - 1; k >= 0; k--) {
    let rest = ids[k]!;
    do {
      const tenth = (rest / 10) >>> 0;
      bytes[--at] = ZERO + rest - tenth * 10;
      rest = tenth;
    } while (rest > 0);
    if (k > 0) bytes[--at] = COMMA;
  }
  return bytes;
}

function digitsOf(id: number): number {
  let digits = 1;
  for (let power = 10; power <= id; power *= 10) digits++;
  return digits;
}
