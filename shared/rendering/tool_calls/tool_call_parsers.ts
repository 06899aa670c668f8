/** The registry of tool-call formats by name. */

import { QWEN25 } from "./formats/qwen25.ts";
import { QWEN3_CODER } from "./formats/qwen3_coder.ts";
import type { ToolCallFormat } from "./tool_call_format.ts";

const FORMATS: readonly ToolCallFormat[] = [QWEN25, QWEN3_CODER];

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
