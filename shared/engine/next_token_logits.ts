/**
 * The logits of one next token over a whole vocabulary, held in the space of a few: some ids have a logit of their own,
 * every other id has the level of its class, and the classes are residues of the id. So the sum over the vocabulary is
 * a sum over the few and eight products. It does not know where the logits come from.
 */

/** Number of classes of ids without a logit of their own. A power of two. */
export const TAIL_CLASSES = 8;

/** A stretch of equally likely ids in the order of likelihood: one id with its own logit, or what is left of a class. */
export interface LogitRun {
  readonly logit: number;
  /** Number of ids. */
  readonly count: number;
  /** The id, or null for a class. */
  readonly id: number | null;
  /** The class, or -1 for an id. */
  readonly tailClass: number;
}

/** Logits for every id in [0, vocabSize). Reused from position to position: `reset`, `set`, `normalize`, then read. */
export class NextTokenLogits {
  readonly vocabSize: number;
  readonly #levels: Float64Array;
  readonly #tailCounts = new Int32Array(TAIL_CLASSES);
  #ids = new Int32Array(64);
  #values = new Float64Array(64);
  #count = 0;
  #shift = 0;
  #tailMasked = false;
  #temperature = 1;
  #max = 0;
  #logRest = 0;

  /** `levels`: the logit of each of the `TAIL_CLASSES` classes. */
  constructor(vocabSize: number, levels: Float64Array) {
    this.vocabSize = vocabSize;
    this.#levels = levels;
  }

  /** Forgets all own logits; id `i` is of class `(i + shift) mod TAIL_CLASSES`. */
  reset(shift: number): void {
    this.#count = 0;
    this.#tailMasked = false;
    this.#shift = shift & (TAIL_CLASSES - 1);
    for (let tailClass = 0; tailClass < TAIL_CLASSES; tailClass++) {
      this.#tailCounts[tailClass] = ((this.vocabSize - 1 - this.#firstOf(tailClass)) >> 3) + 1;
    }
  }

  /** Gives an id its own logit; it may be -Infinity. */
  set(id: number, logit: number): void {
    const known = this.#indexOf(id);
    if (known >= 0) {
      this.#values[known] = logit;
      return;
    }
    this.add(id, logit);
  }

  /** As `set`, for an id that is known to have none yet. */
  add(id: number, logit: number): void {
    if (this.#count === this.#ids.length) this.#grow();
    this.#ids[this.#count] = id;
    this.#values[this.#count] = logit;
    this.#count++;
    this.#tailCounts[(id + this.#shift) & (TAIL_CLASSES - 1)]!--;
  }

  /** The logit of an id. */
  get(id: number): number {
    const known = this.#indexOf(id);
    if (known >= 0) return this.#values[known]!;
    return this.#tailMasked ? -Infinity : this.#levels[(id + this.#shift) & (TAIL_CLASSES - 1)]!;
  }

  /** Makes every id impossible but these. Where all of them are impossible already they become equally likely. */
  restrict(allowed: ReadonlySet<number>): void {
    for (const id of allowed) if (this.#indexOf(id) < 0) this.add(id, this.get(id));
    let possible = false;
    for (let i = 0; i < this.#count; i++) {
      if (!allowed.has(this.#ids[i]!)) this.#values[i] = -Infinity;
      possible ||= this.#values[i]! > -Infinity;
    }
    this.#tailMasked = true;
    if (!possible) { for (const id of allowed) this.set(id, 0); }
  }

  /** Computes the normaliser of softmax(logits / temperature). Must follow the last `set` and precede `logprob`. */
  normalize(temperature: number): void {
    let max = -Infinity;
    let maxIndex = -1;
    for (let i = 0; i < this.#count; i++) {
      if (this.#values[i]! > max) {
        max = this.#values[i]!;
        maxIndex = i;
      }
    }
    let maxClass = -1;
    for (let tailClass = 0; tailClass < TAIL_CLASSES; tailClass++) {
      if (!this.#tailMasked && this.#tailCounts[tailClass]! > 0 && this.#levels[tailClass]! > max) {
        max = this.#levels[tailClass]!;
        maxClass = tailClass;
      }
    }
    // The greatest term is left out of the sum and comes back through log1p: a token of probability 1 - 1e-11 keeps
    // its logprob to full relative precision.
    let rest = 0;
    for (let i = 0; i < this.#count; i++) {
      if (i !== maxIndex || maxClass >= 0) rest += Math.exp((this.#values[i]! - max) / temperature);
    }
    for (let tailClass = 0; tailClass < TAIL_CLASSES && !this.#tailMasked; tailClass++) {
      const count = this.#tailCounts[tailClass]! - (tailClass === maxClass ? 1 : 0);
      if (count > 0) rest += count * Math.exp((this.#levels[tailClass]! - max) / temperature);
    }
    this.#temperature = temperature;
    this.#max = max;
    this.#logRest = Math.log1p(rest);
  }

  /** log softmax(logits / temperature) of an id; -Infinity where it is masked. */
  logprob(id: number): number {
    return this.logprobOfLogit(this.get(id));
  }

  /** log softmax of any id that has this logit. */
  logprobOfLogit(logit: number): number {
    return (logit - this.#max) / this.#temperature - this.#logRest;
  }

  /** All ids from the likeliest on, in runs; equally likely ids by id. Classes with nothing left are missing. */
  runs(): LogitRun[] {
    const runs: LogitRun[] = [];
    for (let i = 0; i < this.#count; i++) {
      runs.push({ logit: this.#values[i]!, count: 1, id: this.#ids[i]!, tailClass: -1 });
    }
    for (let tailClass = 0; tailClass < TAIL_CLASSES; tailClass++) {
      const count = this.#tailCounts[tailClass]!;
      const logit = this.#tailMasked ? -Infinity : this.#levels[tailClass]!;
      if (count > 0) runs.push({ logit, count, id: null, tailClass });
    }
    // Subtracting two masked logits gives NaN, so they are compared, not subtracted.
    return runs.sort((a, b) =>
      a.logit === b.logit ? (a.id ?? this.vocabSize) - (b.id ?? this.vocabSize) : a.logit > b.logit ? -1 : 1
    );
  }

  /** The id at `index` (by id, from 0) among the ids of a class that have no logit of their own. */
  tailId(tailClass: number, index: number): number {
    const own: number[] = [];
    for (let i = 0; i < this.#count; i++) {
      if (((this.#ids[i]! + this.#shift) & (TAIL_CLASSES - 1)) === tailClass) own.push(this.#ids[i]!);
    }
    own.sort((a, b) => a - b);
    let id = this.#firstOf(tailClass) + index * TAIL_CLASSES;
    for (const taken of own) if (taken <= id) id += TAIL_CLASSES;
    return id;
  }

  #firstOf(tailClass: number): number {
    return (tailClass - this.#shift + TAIL_CLASSES) & (TAIL_CLASSES - 1);
  }

  #indexOf(id: number): number {
    for (let i = 0; i < this.#count; i++) if (this.#ids[i] === id) return i;
    return -1;
  }

  #grow(): void {
    const ids = new Int32Array(this.#ids.length * 2);
    const values = new Float64Array(ids.length);
    ids.set(this.#ids);
    values.set(this.#values);
    this.#ids = ids;
    this.#values = values;
  }
}
