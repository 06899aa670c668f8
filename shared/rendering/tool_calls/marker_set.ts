/** Finds the first of several literals in a text. It knows nothing of what they mean. */

const SPECIAL = /[.*+?^${}()|[\]\\/]/g;

/** Literal text as a regular expression's source. */
export function escapePattern(literal: string): string {
  return literal.replace(SPECIAL, "\\$&");
}

/** Sets that are kept: formats name a few dozen, some with names of tools in them. */
const KEPT_SETS = 500;
/** Longer ones hold a client's own words, and are not worth their room. */
const LONGEST_KEPT = 2000;
const kept = new Map<string, MarkerSet>();

/** A set of literals; where one begins another, the longer one is found. */
export class MarkerSet {
  /** The set of these literals. It has no state, so that parsers of one format share it. */
  static of(literals: readonly string[]): MarkerSet {
    const key = JSON.stringify(literals);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const set = new MarkerSet(literals);
    if (key.length > LONGEST_KEPT) return set;
    if (kept.size >= KEPT_SETS) kept.clear();
    kept.set(key, set);
    return set;
  }

  /** The literals, longest first. */
  readonly literals: readonly string[];
  readonly #pattern: RegExp;
  readonly #longest: number;
  readonly #openings: ReadonlySet<string>;

  constructor(literals: readonly string[]) {
    this.literals = [...new Set(literals)].sort((a, b) => b.length - a.length);
    this.#pattern = new RegExp(this.literals.map(escapePattern).join("|") || "[]", "g");
    this.#longest = this.literals[0]?.length ?? 0;
    const openings = new Set<string>();
    for (const literal of this.literals) {
      for (let length = 1; length < literal.length; length++) openings.add(literal.slice(0, length));
    }
    this.#openings = openings;
  }

  /** The first literal at or after `from`, and where it begins. */
  find(text: string, from: number): { literal: string; index: number } | null {
    if (this.literals.length === 0) return null;
    this.#pattern.lastIndex = from;
    const match = this.#pattern.exec(text);
    return match === null ? null : { literal: match[0], index: match.index };
  }

  /** Whether the text from `index` to its end is the unfinished beginning of a literal. */
  opensAt(text: string, index: number): boolean {
    const length = text.length - index;
    return length < this.#longest && this.#openings.has(text.slice(index));
  }

  /** Where, at or after `from`, the text's end may be the beginning of a literal; the text's length if nowhere. */
  openEnd(text: string, from: number): number {
    for (let index = Math.max(from, text.length - this.#longest + 1); index < text.length; index++) {
      if (this.#openings.has(text.slice(index))) return index;
    }
    return text.length;
  }
}
