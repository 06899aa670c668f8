/**
 * Texts that a seed repeats, made exactly as random_texts.py makes them. Pieces and recipes stand in text_pieces.json and
 * nasty_texts.json. It knows nothing of vocabularies but the texts of their added tokens.
 */

import { seededRandom } from "../fixtures/seeded_random.ts";
import type { Random } from "../fixtures/seeded_random.ts";
import nastyRecipes from "./nasty_texts.json" with { type: "json" };
import pieces from "./text_pieces.json" with { type: "json" };

const CASES_A_CHUNK = 100;
const NASTY_A_CHUNK = 10;
/** Random texts come in so many chunks. */
export const RANDOM_CHUNKS = 50;

/** A piece of a nasty text: itself, the nth added token, or a text and how often it is repeated. */
type Recipe = readonly (string | number | readonly (string | number)[])[];

/** The texts of one chunk of random texts. */
export function randomChunk(chunk: number, addedTokens: readonly string[]): string[] {
  const random = seededRandom(0x5eed + chunk);
  return Array.from({ length: CASES_A_CHUNK }, () => randomText(random, addedTokens));
}

/** All nasty texts, in chunks. */
export function nastyChunks(addedTokens: readonly string[]): string[][] {
  const texts = nastyRecipes.map((recipe) => nastyText(recipe, addedTokens));
  return Array.from(
    { length: Math.ceil(texts.length / NASTY_A_CHUNK) },
    (_, chunk) => texts.slice(chunk * NASTY_A_CHUNK, (chunk + 1) * NASTY_A_CHUNK),
  );
}

/** `@d800` and the like is the unit of that number, since JSON files here hold no lone surrogates. */
function unescaped(text: string): string {
  return text.replace(/@(d[89a-f][0-9a-f]{2})/g, (_, unit: string) => String.fromCharCode(parseInt(unit, 16)));
}

function randomText(random: Random, addedTokens: readonly string[]): string {
  let text = "";
  for (let left = 1 + random.integer(10); left > 0; left--) text += randomPiece(random, addedTokens);
  return text;
}

function randomPiece(random: Random, addedTokens: readonly string[]): string {
  const kind = random.integer(10);
  if (kind < 4) {
    const alphabet = random.pick(pieces.alphabets);
    return repeated(1 + random.integer(16), () => random.pick(alphabet));
  }
  if (kind < 6) return unescaped(random.pick(pieces.words));
  if (kind === 6) {
    const [low = 0, high = 0] = random.pick(pieces.ranges);
    return repeated(1 + random.integer(6), () => String.fromCodePoint(low + random.integer(high - low)));
  }
  if (kind === 7) {
    const token = random.pick(addedTokens);
    return random.integer(3) > 0 ? token : token.slice(0, random.integer(token.length));
  }
  if (kind === 8) {
    const unit = random.pick(pieces.repeated);
    return unit.repeat(1 + random.integer(60));
  }
  return String.fromCharCode(random.integer(0x10000));
}

function repeated(count: number, make: () => string): string {
  let text = "";
  for (let left = count; left > 0; left--) text += make();
  return text;
}

function nastyText(recipe: Recipe, addedTokens: readonly string[]): string {
  return recipe.map((item) => {
    if (typeof item === "string") return unescaped(item);
    if (typeof item === "number") return addedTokens[item % addedTokens.length] ?? "";
    const [text, count] = item;
    return unescaped(String(text)).repeat(Number(count));
  }).join("");
}
