/** Reads the answer: text, framing and the blocks of one format. It knows no format's inside. */

import type { MachineContext } from "./call_block.ts";
import { MarkerSet } from "./marker_set.ts";
import { seek } from "./reading.ts";
import type { Step } from "./text_cursor.ts";
import type { BlockReader } from "./tool_call_format.ts";

/** What is read in an answer. */
export interface ContentOptions {
  /** Null where calls are not read: call markup is then text. */
  readonly reader: BlockReader | null;
  readonly framing: readonly string[];
  /** The end markers of a reasoning block that a call closed; one of them is dropped. */
  readonly strayEnds: readonly string[];
}

/** Reads to the end of the text. */
export function* readContent(context: MachineContext, options: ContentOptions): Step<void> {
  const { cursor, sink } = context;
  const { reader, framing } = options;
  const starts = new Set(reader?.starts);
  const candidates = reader?.candidates ?? [];
  const lasting = MarkerSet.of([...starts, ...candidates, ...framing]);
  let markers = options.strayEnds.length === 0 ? lasting : MarkerSet.of([...lasting.literals, ...options.strayEnds]);
  function onText(text: string): void {
    sink.content(text);
  }
  if (reader?.readOpening !== undefined) yield* reader.readOpening();
  for (;;) {
    const marker = yield* seek(cursor, markers, onText);
    if (marker === null) return;
    if (starts.has(marker) && reader !== null) {
      yield* reader.readBlock(marker);
    } else if (candidates.includes(marker)) {
      const isBlock = reader?.readCandidate === undefined ? false : yield* reader.readCandidate();
      if (!isBlock) {
        cursor.position += marker.length;
        sink.content(marker);
      }
    } else {
      cursor.position += marker.length;
      sink.framing(marker.length);
      if (options.strayEnds.includes(marker)) markers = lasting;
    }
  }
}
