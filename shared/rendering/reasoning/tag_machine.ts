/** Reads the reasoning between two markers at the start of a text (rule 3). What comes after is not its affair. */

import { MarkerSet } from "../tool_calls/marker_set.ts";
import { accept, seek, skipSpace } from "../tool_calls/reading.ts";
import type { MachineContext } from "../tool_calls/call_block.ts";
import type { Step } from "../tool_calls/text_cursor.ts";
import type { TagReasoning } from "./reasoning_format.ts";

/** How reading of reasoning ended: there was none or its end marker came, or something else closed it, or the text ended in it. */
export type ReasoningEnd = "closed" | "interrupted" | "text_ended";

/** Reads up to the answer. `callStarts` close the block, too. */
export function* readTagReasoning(
  context: MachineContext,
  syntax: TagReasoning,
  options: { readonly isOpen: boolean; readonly callStarts: readonly string[] },
): Step<ReasoningEnd> {
  const { cursor, sink } = context;
  function onText(text: string): void {
    sink.reasoning(text);
  }
  let isOpen = options.isOpen;
  // Opening markers at the start, however many, and the white space before each.
  for (;;) {
    const from = cursor.offset;
    cursor.keep(from);
    yield* skipSpace(cursor);
    const marker = yield* accept(cursor, syntax.starts);
    if (marker === null) {
      cursor.rewind(from);
      cursor.release();
      break;
    }
    sink.framing(cursor.offset - from);
    isOpen = true;
  }
  if (!isOpen) return "closed";
  const closers = MarkerSet.of([...syntax.ends, ...options.callStarts, ...(syntax.closers ?? [])]);
  const marker = yield* seek(cursor, closers, onText);
  sink.endReasoning();
  if (marker === null) {
    sink.report("truncated");
    return "text_ended";
  }
  if (!syntax.ends.includes(marker)) return "interrupted";
  cursor.position += marker.length;
  sink.framing(marker.length);
  return "closed";
}
