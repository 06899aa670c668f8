/** The registry of tool-call formats by name. */

import { APERTUS2509 } from "./formats/apertus2509.ts";
import { COHERE_COMMAND4 } from "./formats/cohere_command4.ts";
import { DEEPSEEKV3 } from "./formats/deepseekv3.ts";
import { DEEPSEEKV31 } from "./formats/deepseekv31.ts";
import { DEEPSEEKV32 } from "./formats/deepseekv32.ts";
import { DEEPSEEKV4 } from "./formats/deepseekv4.ts";
import { GEMMA4 } from "./formats/gemma4.ts";
import { GIGACHAT3 } from "./formats/gigachat3.ts";
import { GLM45 } from "./formats/glm45.ts";
import { GPT_OSS } from "./formats/gpt_oss.ts";
import { HUNYUAN } from "./formats/hunyuan.ts";
import { INKLING } from "./formats/inkling.ts";
import { INTERNS1 } from "./formats/interns1.ts";
import { KIMI_K2 } from "./formats/kimi_k2.ts";
import { KIMI_K3 } from "./formats/kimi_k3.ts";
import { LFM2 } from "./formats/lfm2.ts";
import { LLAMA3 } from "./formats/llama3.ts";
import { MIMO } from "./formats/mimo.ts";
import { MINICPM5 } from "./formats/minicpm5.ts";
import { MINIMAX_M2 } from "./formats/minimax_m2.ts";
import { MINIMAX_M3 } from "./formats/minimax_m3.ts";
import { MISTRAL } from "./formats/mistral.ts";
import { MUSE } from "./formats/muse.ts";
import { PYTHONIC } from "./formats/pythonic.ts";
import { QWEN25 } from "./formats/qwen25.ts";
import { QWEN3_CODER } from "./formats/qwen3_coder.ts";
import { STEP3 } from "./formats/step3.ts";
import type { ToolCallFormat } from "./tool_call_format.ts";

const FORMATS: readonly ToolCallFormat[] = [
  APERTUS2509,
  COHERE_COMMAND4,
  DEEPSEEKV3,
  DEEPSEEKV31,
  DEEPSEEKV32,
  DEEPSEEKV4,
  GEMMA4,
  GIGACHAT3,
  GLM45,
  GPT_OSS,
  HUNYUAN,
  INKLING,
  INTERNS1,
  KIMI_K2,
  KIMI_K3,
  LFM2,
  LLAMA3,
  MIMO,
  MINICPM5,
  MINIMAX_M2,
  MINIMAX_M3,
  MISTRAL,
  MUSE,
  PYTHONIC,
  QWEN25,
  QWEN3_CODER,
  STEP3,
];

const BY_NAME: ReadonlyMap<string, ToolCallFormat> = new Map(
  FORMATS.flatMap((format) => format.names.map((name) => [name, format] as const)),
);

/** The names of all tool-call parsers, sorted. They are SGLang's, and so is their case. */
export const TOOL_CALL_PARSERS: readonly string[] = [...BY_NAME.keys()].sort();

/** Whether a name is a tool-call parser's. */
export function isToolCallParser(name: string): boolean {
  return BY_NAME.has(name);
}

/** The format of a name, or null. */
export function toolCallFormat(name: string): ToolCallFormat | null {
  return BY_NAME.get(name) ?? null;
}
