/**
 * Streaming for decoders whose text is not the bytes of its tokens joined (SentencePiece's, WordPiece's): it decodes a
 * short window again and again and gives out what the next token did not change. It knows nothing of vocabularies.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { IncrementalDecoder } from "../../ports/tokenizer.ts";

/** Once this many ids are settled the window starts anew at the last of them, so that the work per id stays bounded. */
const WINDOW = 16;

/**
 * A decoder that stays one token behind: a token's text is given out once the token after it has left it unchanged. An
 * incomplete character (U+FFFD at the end) is never given out before the end.
 */
export function windowDecoder(decode: (ids: number[]) => string): IncrementalDecoder {
  let ids: number[] = [];
  let text = "";
  /** How much of `text` has been given out. */
  let given = 0;

  return {
    push: (id) => {
      const before = text;
      ids.push(id);
      text = decode(ids);
      const stable = stableLength(before, text);
      const piece = text.slice(given, Math.max(given, stable));
      given = Math.max(given, stable);
      if (ids.length > WINDOW && given === before.length) restart(id);
      return piece;
    },
    finish: () => {
      const rest = text.slice(given);
      ids = [];
      text = "";
      given = 0;
      return rest;
    },
  };

  /** Begins a window at the token before the last one, if the last one reads the same in it. */
  function restart(last: number): void {
    const anchor = ids[ids.length - 2];
    if (anchor === undefined) return;
    const head = decode([anchor]);
    const window = decode([anchor, last]);
    if (head.endsWith("\ufffd") || !window.startsWith(head) || window.slice(head.length) !== text.slice(given)) return;
    ids = [anchor, last];
    text = window;
    given = head.length;
  }

  function stableLength(before: string, after: string): number {
    let length = 0;
    while (length < before.length && before.charCodeAt(length) === after.charCodeAt(length)) length++;
    while (length > 0 && before.charCodeAt(length - 1) === 0xfffd) length--;
    if (length > 0 && isHighSurrogate(before.charCodeAt(length - 1))) length--;
    if (length < given) {
      throw new VerbatimError("internal", "The tokenizer's decoder changed text that was already given out.");
    }
    return length;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
