/** Reads sampled text as it comes (parsing rules). Implementations: rendering/. */

import type { ParseReport } from "../core/turn.ts";

/** A piece of the assistant message. Text deltas are final; a call comes whole, once its block is known to be good. */
export type ParseDelta =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "content"; readonly text: string }
  | { readonly type: "tool_call"; readonly name: string; readonly arguments: string };

/** The whole result. Joined deltas equal it. */
export interface ParsedCompletion {
  readonly reasoning: string | null;
  readonly content: string | null;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly parse: ParseReport;
}

/** An incremental machine; one per completion. The same deltas, joined, for any chunking of the same text (rule 1). */
export interface CompletionParser {
  push(text: string): ParseDelta[];
  /** The end of the text: the last deltas. */
  finish(): ParseDelta[];
  /** Valid after `finish`. */
  result(): ParsedCompletion;
  /** Where the reasoning stands in the text, in UTF-16 units, ascending and apart. Valid after `finish`. */
  reasoningSpans(): readonly (readonly [start: number, end: number])[];
}
