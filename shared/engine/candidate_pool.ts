/**
 * The ids that the model likes to say: tokens that read as plain text on their own. It looks at the vocabulary once and
 * does not know how candidates are chosen from the pool.
 */

import type { Tokenizer } from "../ports/tokenizer.ts";
import { mix } from "./hashing.ts";

/** What is looked at and taken at most: finding the pool must not cost a walk over a large vocabulary. */
const MOST_IDS = 2048;
const MOST_LOOKS = 32768;
/** Low ids are a merge table's common words. */
const COMMON_IDS = 16384;

/** Printable ASCII that starts like a word, a number or a mark and holds no control character. */
const PLAIN_TEXT = /^ ?(?:[A-Za-z]+|[0-9]|[,.;:!?'"()-])$/;

/**
 * Ids of plain text tokens in id order, at most 2048. A small vocabulary is looked at whole, of a large one its
 * first 16384 ids are sampled. Added tokens are never among them. A vocabulary without a plain token
 * gives all ids that are not added tokens (at most 2048).
 */
export function candidatePool(tokenizer: Tokenizer): Uint32Array {
  const { vocabSize } = tokenizer;
  const added = new Set(tokenizer.addedTokens.values());
  const plain = new Set<number>();
  const other = new Set<number>();
  const looks = vocabSize <= COMMON_IDS ? vocabSize : MOST_LOOKS;
  for (let look = 0; look < looks && plain.size < MOST_IDS; look++) {
    const id = vocabSize <= COMMON_IDS ? look : mix(0x51ab, look) % COMMON_IDS;
    if (added.has(id)) continue;
    if (PLAIN_TEXT.test(tokenizer.decode([id]))) plain.add(id);
    else if (other.size < MOST_IDS) other.add(id);
  }
  return Uint32Array.from(plain.size > 0 ? plain : other).sort();
}
