/** Takes a stop token off the very end of a text that is still coming. It knows nothing of what the text means. */

import { MarkerSet } from "./marker_set.ts";

/** Holds back what may turn out to be a final stop token. */
export class StopTokenFilter {
  readonly #tokens: ReadonlySet<string>;
  readonly #markers: MarkerSet;
  #held = "";

  constructor(stopTokens: readonly string[]) {
    this.#tokens = new Set(stopTokens);
    // A token is held when whole, as if it were the beginning of a longer one.
    this.#markers = MarkerSet.of(stopTokens.map((token) => token + "\0"));
  }

  /** The text that is certain not to be a final stop token. */
  push(text: string): string {
    const all = this.#held + text;
    const end = this.#markers.openEnd(all, 0);
    this.#held = all.slice(end);
    return all.slice(0, end);
  }

  /** What was held back: text, or the stop token. */
  finish(): { readonly text: string; readonly stopToken: string } {
    return this.#tokens.has(this.#held) ? { text: "", stopToken: this.#held } : { text: this.#held, stopToken: "" };
  }
}
