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
    return Math.max(...this.#stops.map((stop) => longestStartAtEnd(this.#held, stop)));
  }
}

/**
 * Whether a stop string may be under way at the end of a text: it ends with the beginning of one, or in the middle of a
 * character. Who goes on from here and looks at new text only would miss it.
 */
export function mayBeStopping(text: string, stops: readonly string[]): boolean {
  const wanted = stops.filter((stop) => stop !== "");
  if (wanted.length === 0) return false;
  if (text.endsWith("\ufffd")) return true;
  return wanted.some((stop) => longestStartAtEnd(text, stop) > 0);
}

/** Length of the longest end of the text that is a beginning of `stop` and not the whole of it. */
function longestStartAtEnd(text: string, stop: string): number {
  for (let length = Math.min(stop.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}
