/** Qwen3: ChatML, JSON calls in `<tool_call>`, reasoning in `<think>`. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const QWEN3: Family = {
  ...PLAIN_FAMILY,
  name: "qwen3",
};
