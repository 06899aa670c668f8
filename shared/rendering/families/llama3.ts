/** Llama 3.1 and later: a call may end in `<|eom_id|>`, for which history writes `<|eot_id|>`; one call a reply. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const LLAMA3: Family = {
  ...PLAIN_FAMILY,
  name: "llama3",
  stopTokens: ["<|eom_id|>"],
  closedBy: new Map([["<|eom_id|>", "<|eot_id|>"]]),
  callsInParallel: false,
};
