/** Qwen3-Coder and its successors: ChatML, calls as `<function=...>` elements in `<tool_call>`. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const QWEN3_CODER: Family = {
  ...PLAIN_FAMILY,
  name: "qwen3_coder",
};
