/** Apertus: inner text between markers. */

import type { ReasoningFormat } from "../reasoning_format.ts";

export const APERTUS2509_INNER: ReasoningFormat = {
  names: ["apertus2509"],
  stopTokens: ["<|assistant_end|>"],
  syntax: { type: "tags", starts: ["<|inner_prefix|>"], ends: ["<|inner_suffix|>"] },
};
