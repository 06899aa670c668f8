/** The registry of reasoning formats by name. */

import { APERTUS2509_INNER } from "./formats/apertus2509.ts";
import { COHERE_THINKING } from "./formats/cohere_command4.ts";
import { GEMMA4_THOUGHT } from "./formats/gemma4.ts";
import { GPT_OSS_ANALYSIS } from "./formats/gpt_oss.ts";
import { HUNYUAN_THINK } from "./formats/hunyuan.ts";
import { INKLING_THINKING } from "./formats/inkling.ts";
import { KIMI } from "./formats/kimi.ts";
import { KIMI_K3_THINK } from "./formats/kimi_k3.ts";
import { MINIMAX_APPEND_THINK } from "./formats/minimax_append_think.ts";
import { MINIMAX_M3_THINK } from "./formats/minimax_m3.ts";
import { MISTRAL_THINK } from "./formats/mistral.ts";
import { MUSE_SELF } from "./formats/muse.ts";
import { THINK } from "./formats/think.ts";
import type { ReasoningFormat } from "./reasoning_format.ts";

const FORMATS: readonly ReasoningFormat[] = [
  APERTUS2509_INNER,
  COHERE_THINKING,
  GEMMA4_THOUGHT,
  GPT_OSS_ANALYSIS,
  HUNYUAN_THINK,
  INKLING_THINKING,
  KIMI,
  KIMI_K3_THINK,
  MINIMAX_APPEND_THINK,
  MINIMAX_M3_THINK,
  MISTRAL_THINK,
  MUSE_SELF,
  THINK,
];

const BY_NAME: ReadonlyMap<string, ReasoningFormat> = new Map(
  FORMATS.flatMap((format) => format.names.map((name) => [name, format] as const)),
);

/** The names of all reasoning parsers, sorted. They are SGLang's; case does not matter. */
export const REASONING_PARSERS: readonly string[] = [...BY_NAME.keys()].sort();

/** Whether a name is a reasoning parser's. */
export function isReasoningParser(name: string): boolean {
  return BY_NAME.has(name.toLowerCase());
}

/** The format of a name, or null. */
export function reasoningFormat(name: string): ReasoningFormat | null {
  return BY_NAME.get(name.toLowerCase()) ?? null;
}
