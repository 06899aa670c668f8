/** The registry of reasoning formats by name. */

import { THINK } from "./formats/think.ts";
import type { ReasoningFormat } from "./reasoning_format.ts";

const FORMATS: readonly ReasoningFormat[] = [THINK];

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
