/** Short fingerprints of text. They tell values apart; they keep no secrets. */

import { hash } from "node:crypto";
import { RecentMap } from "./recent_map.ts";

/** Short texts come again with every request of a task: settings, sampling, calls, earlier replies. Looking one up costs a tenth of hashing it. */
const LONGEST_KEPT = 1024;
const KEPT_UNITS = 4 * 1024 * 1024;
const ENTRY_UNITS = 64;
const kept = new RecentMap<string>(KEPT_UNITS);

/** SHA-256 of a text's UTF-8, truncated to 128 bits, as 32 hex digits. */
export function digest(text: string): string {
  if (text.length > LONGEST_KEPT) return hashed(text);
  const weight = text.length + ENTRY_UNITS;
  const known = kept.get(text, weight);
  if (known !== undefined) return known;
  const made = hashed(text);
  kept.set(text, made, weight);
  return made;
}

function hashed(text: string): string {
  return hash("sha256", text, "hex").slice(0, 32);
}

/** The digest of values in order. Lone surrogates and separators inside values cannot make two lists look alike. */
export function digestOf(...values: readonly (string | number | null | readonly string[])[]): string {
  return digest(JSON.stringify(values));
}
