/** gpt-oss: a reply ends in `<|return|>` or, with its one call, in `<|call|>`; history writes `<|end|>` for the former. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const GPT_OSS: Family = {
  ...PLAIN_FAMILY,
  name: "gpt_oss",
  stopTokens: ["<|return|>", "<|call|>"],
  closedBy: new Map([["<|return|>", "<|end|>"]]),
  callsInParallel: false,
};
