/** DeepSeek V3 and R1: fenced calls between tokens; the template in the tokenizer does not take results. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const DEEPSEEK_V3: Family = {
  ...PLAIN_FAMILY,
  name: "deepseek_v3",
  templateHint:
    "CHAT_TEMPLATE=shared/rendering/families/templates/deepseek_v3.jinja writes the same tokens and continues results.",
};
