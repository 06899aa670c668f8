/** Where two lists of tokens first differ, in words. It knows nothing of what they are for. */

import type { Tokenizer } from "../ports/tokenizer.ts";

const BEFORE = 3;
const AFTER = 4;

/** The place and the tokens around it, or null where the lists are equal. */
export function tokenDifference(
  tokenizer: Pick<Tokenizer, "decode" | "vocabSize">,
  found: ArrayLike<number>,
  wanted: ArrayLike<number>,
): string | null {
  const most = Math.max(found.length, wanted.length);
  let at = 0;
  while (at < most && found[at] === wanted[at]) at++;
  if (at === most) return null;
  const words = (ids: ArrayLike<number>, from: number, to: number) =>
    Array.from(ids).slice(from, to).map((id) => `${wordOf(tokenizer, id)} (${id})`).join(" ");
  const shared = words(wanted, Math.max(at - BEFORE, 0), at);
  return `token ${at}${shared === "" ? "" : `, after ${shared},`} is ${words(found, at, at + AFTER) || "missing"}` +
    ` instead of ${words(wanted, at, at + AFTER) || "the end"}`;
}

function wordOf(tokenizer: Pick<Tokenizer, "decode" | "vocabSize">, id: number): string {
  const isToken = Number.isInteger(id) && id >= 0 && id < tokenizer.vocabSize;
  return isToken ? JSON.stringify(tokenizer.decode([id])) : "no token";
}
