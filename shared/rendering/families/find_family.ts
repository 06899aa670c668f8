/** The family by name, or by the parsers that fit the model. */

import { VerbatimError } from "../../core/errors.ts";
import type { Family } from "./family.ts";
import { GENERAL } from "./general.ts";
import { GPT_OSS } from "./gpt_oss.ts";
import { KIMI_K2 } from "./kimi_k2.ts";
import { MISTRAL } from "./mistral.ts";
import { QWEN3 } from "./qwen3.ts";
import { QWEN3_CODER } from "./qwen3_coder.ts";

const FAMILIES: readonly Family[] = [QWEN3, QWEN3_CODER, KIMI_K2, GPT_OSS, MISTRAL, GENERAL];

/** `auto` chooses by parsers; an unknown name is `not_ready`. */
export function findFamily(
  name: string,
  parsers: { readonly toolCallParser: string | null; readonly reasoningParser: string | null },
): Family {
  if (name !== "auto") {
    const family = FAMILIES.find((family) => family.name === name);
    if (family !== undefined) return family;
    const known = FAMILIES.map((family) => family.name).join(", ");
    throw new VerbatimError("not_ready", `There is no model family named ${name}; the families are ${known}.`);
  }
  switch (parsers.toolCallParser) {
    case "qwen":
    case "qwen25":
      return parsers.reasoningParser === "qwen3" || parsers.reasoningParser === "qwen3-thinking" ? QWEN3 : GENERAL;
    case "qwen3_coder":
      return QWEN3_CODER;
    case "kimi_k2":
      return KIMI_K2;
    case "gpt-oss":
      return GPT_OSS;
    case "mistral":
      return MISTRAL;
    default:
      return GENERAL;
  }
}
