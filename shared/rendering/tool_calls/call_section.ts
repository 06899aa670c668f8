/** Reads a section: calls between a wrapper's markers. What a call looks like is its reader's affair. */

import type { CallBlock, MachineContext, TextStatus } from "./call_block.ts";
import { MarkerSet } from "./marker_set.ts";
import { accept, isSpace, seek, skipSpace } from "./reading.ts";
import type { Step } from "./text_cursor.ts";

/** The markers of a section. */
export interface Wrapper {
  readonly start: string;
  readonly end: string;
}

/** Reads one call whose start marker has been read, and tells the block what it was. */
export type ReadCallAt = (block: CallBlock, start: string) => Step<void>;

/** What may stand between calls. */
export interface SectionMarkers {
  readonly callStarts: readonly string[];
  /** Markers that end the section. */
  readonly ends: readonly string[];
  /** Markers before which the section is over. */
  readonly bounds: readonly string[];
  /** Markers that mean nothing within. */
  readonly separators: readonly string[];
}

/** Reads calls up to the section's end, and says what the section is if no call in it was good or bad. */
export function* readCalls(
  context: MachineContext,
  block: CallBlock,
  markers: SectionMarkers,
  readCall: ReadCallAt,
): Step<TextStatus> {
  const { cursor } = context;
  const { callStarts, ends, bounds, separators } = markers;
  const inside = MarkerSet.of([...callStarts, ...ends, ...bounds, ...separators]);
  let isBlank = true;
  function note(text: string): void {
    isBlank = isBlank && isSpace(text);
    // What stands behind a good call can be released at once.
    if (block.hasCall) block.text("nothing");
  }
  for (;;) {
    isBlank = true;
    const marker = yield* seek(cursor, inside, note);
    block.text("nothing");
    if (marker === null) return block.hasBad && isBlank ? "nothing" : "truncated";
    if (bounds.includes(marker)) return "malformed";
    cursor.position += marker.length;
    if (callStarts.includes(marker)) {
      yield* readCall(block, marker);
    } else {
      block.markup();
      if (ends.includes(marker)) return "malformed";
    }
  }
}

/** Reads sections and bare calls of one format. */
export class SectionReader {
  readonly #context: MachineContext;
  readonly #wrapper: Wrapper | null;
  readonly #callStarts: readonly string[];
  readonly #readCall: ReadCallAt;

  constructor(
    context: MachineContext,
    markers: { readonly wrapper: Wrapper | null; readonly callStarts: readonly string[] },
    readCall: ReadCallAt,
  ) {
    this.#context = context;
    this.#wrapper = markers.wrapper;
    this.#callStarts = markers.callStarts;
    this.#readCall = readCall;
  }

  /** Reads on from a start marker, which has been read as part of `block`, to the section's or the bare call's end. */
  *read(block: CallBlock, start: string): Step<void> {
    const { cursor } = this.#context;
    const wrapper = this.#wrapper;
    if (wrapper !== null && start === wrapper.start) {
      block.markup();
      const markers = { callStarts: this.#callStarts, ends: [wrapper.end], bounds: [wrapper.start], separators: [] };
      block.close(yield* readCalls(this.#context, block, markers, this.#readCall));
      return;
    }
    yield* this.#readCall(block, start);
    // A wrapper's end without its start is markup, too.
    if (block.hasCall && wrapper !== null) {
      yield* skipSpace(cursor);
      yield* accept(cursor, [wrapper.end]);
      block.markup();
    }
    block.close("malformed");
  }
}
