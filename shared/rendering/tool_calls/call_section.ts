/** Reads a section: a wrapper with calls in it. What a call looks like is its reader's affair. */

import type { CallBlock, MachineContext } from "./call_block.ts";
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

/** Reads sections and bare calls. */
export class SectionReader {
  readonly #context: MachineContext;
  readonly #wrapper: Wrapper | null;
  readonly #callStarts: ReadonlySet<string>;
  readonly #inside: MarkerSet;
  readonly #readCall: ReadCallAt;

  constructor(
    context: MachineContext,
    markers: { readonly wrapper: Wrapper | null; readonly callStarts: readonly string[] },
    readCall: ReadCallAt,
  ) {
    this.#context = context;
    this.#wrapper = markers.wrapper;
    this.#callStarts = new Set(markers.callStarts);
    const wrapperMarkers = markers.wrapper === null ? [] : [markers.wrapper.start, markers.wrapper.end];
    this.#inside = new MarkerSet([...markers.callStarts, ...wrapperMarkers]);
    this.#readCall = readCall;
  }

  /** Reads on from a start marker, which has been read as part of `block`, to the section's or the bare call's end. */
  *read(block: CallBlock, start: string): Step<void> {
    if (start === this.#wrapper?.start) {
      block.markup();
      yield* this.#readWrapped(block, this.#wrapper);
      return;
    }
    yield* this.#readCall(block, start);
    // A wrapper's end without its start is markup, too.
    if (block.hasCall && this.#wrapper !== null) {
      yield* skipSpace(this.#context.cursor);
      yield* accept(this.#context.cursor, [this.#wrapper.end]);
      block.markup();
    }
    block.close("malformed");
  }

  *#readWrapped(block: CallBlock, wrapper: Wrapper): Step<void> {
    const { cursor } = this.#context;
    let isBlank = true;
    function note(text: string): void {
      isBlank = isBlank && isSpace(text);
      // What stands between good calls can be released at once.
      if (block.hasCall) block.text("nothing");
    }
    for (;;) {
      isBlank = true;
      const marker = yield* seek(cursor, this.#inside, note);
      block.text("nothing");
      if (marker === null) {
        block.close(block.hasBad && isBlank ? "malformed" : "truncated");
        return;
      }
      if (marker === wrapper.start) {
        block.close("malformed");
        return;
      }
      cursor.position += marker.length;
      if (!this.#callStarts.has(marker)) {
        block.markup();
        block.close("malformed");
        return;
      }
      yield* this.#readCall(block, marker);
    }
  }
}
