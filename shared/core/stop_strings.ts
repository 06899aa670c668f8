/** Cuts streamed text at stop strings. It knows text only; which stop ended the generation is the engine's word. */

/**
 * Releases text that can't be part of a stop string. From the first whole stop string on, everything is held: if the
 * engine then says that a stop string ended the generation, the held text is dropped (the engine cuts at the first
 * occurrence too), else it was text after all.
 */
export class StopStringCutter {
  readonly #stops: readonly string[];
  #held = "";
  #found = false;

  /** `stops` are non-empty strings. */
  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "");
  }

  /** The text that is certain after `text`. */
  push(text: string): string {
    if (this.#stops.length === 0) return text;
    this.#held += text;
    if (this.#found) return "";
    const at = this.#firstStop();
    if (at !== -1) {
      this.#found = true;
      return this.#release(at);
    }
    return this.#release(this.#held.length - this.#longestStartAtEnd());
  }

  /** The end: the rest of the text, cut at the stop string that ended it, or null where no stop string did. */
  finish(matched: string | null): string {
    if (matched === null) return this.#release(this.#held.length);
    const at = this.#held.indexOf(matched);
    const rest = this.#release(at === -1 ? this.#held.length : at);
    this.#held = "";
    return rest;
  }

  #release(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return text;
  }

  #firstStop(): number {
    let first = -1;
    for (const stop of this.#stops) {
      const at = this.#held.indexOf(stop);
      if (at !== -1 && (first === -1 || at < first)) first = at;
    }
    return first;
  }

  /** Length of the longest end of the held text that a stop string may begin with. */
  #longestStartAtEnd(): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, this.#held.length); length > longest; length--) {
        if (this.#held.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
