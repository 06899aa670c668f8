/** Short fingerprints of text. They tell values apart; they keep no secrets. */

import { hash } from "node:crypto";

/** SHA-256 of a text's UTF-8, truncated to 128 bits, as 32 hex digits. */
export function digest(text: string): string {
  return hash("sha256", text, "hex").slice(0, 32);
}

/** The digest of values in order. Lone surrogates and separators inside values cannot make two lists look alike. */
export function digestOf(...values: readonly (string | number | null | readonly string[])[]): string {
  return digest(JSON.stringify(values));
}
