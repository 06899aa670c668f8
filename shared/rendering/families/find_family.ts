/** The family by name, or by the parsers that fit the model. */

import { VerbatimError } from "../../core/errors.ts";
import { DEEPSEEK_V3 } from "./deepseek_v3.ts";
import type { Family } from "./family.ts";
import { GENERAL } from "./general.ts";
import { GLM } from "./glm.ts";
import { GPT_OSS } from "./gpt_oss.ts";
import { KIMI_K2 } from "./kimi_k2.ts";
import { LLAMA3 } from "./llama3.ts";
import { MISTRAL } from "./mistral.ts";
import { QWEN3 } from "./qwen3.ts";
import { QWEN3_CODER } from "./qwen3_coder.ts";

const FAMILIES: readonly Family[] = [QWEN3, QWEN3_CODER, GLM, DEEPSEEK_V3, KIMI_K2, LLAMA3, MISTRAL, GPT_OSS, GENERAL];

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
    case "glm":
    case "glm45":
    case "glm47":
      return GLM;
    case "deepseekv3":
      return DEEPSEEK_V3;
    case "llama3":
      return LLAMA3;
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
