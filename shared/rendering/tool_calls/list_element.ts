/** Finds where a broken element of a list ends, by brackets and quotes alone. It knows neither JSON nor Python. */

import { MarkerSet } from "./marker_set.ts";
import { accept, seek } from "./reading.ts";
import type { Step, TextCursor } from "./text_cursor.ts";

const BRACKETS = ["{", "}", "[", "]", "(", ")", ",", "\\", "\n", '"'];

/** How a broken element is bounded. */
export interface SkipOptions {
  /** Markers that end the element wherever they stand. */
  readonly stops: readonly string[];
  /** In a list a comma or the list's bracket ends the element, in a sequence the bracket that closes it. */
  readonly place: "list" | "sequence";
  readonly hasSingleQuotes: boolean;
}

/** Goes to the end of the element; false if the text ends first. */
export function* skipElement(cursor: TextCursor, options: SkipOptions): Step<boolean> {
  const { stops, place, hasSingleQuotes } = options;
  const markers = MarkerSet.of([...stops, ...BRACKETS, ...(hasSingleQuotes ? ["'"] : [])]);
  let depth = 0;
  let quote: string | null = null;
  for (;;) {
    const marker = yield* seek(cursor, markers);
    if (marker === null) return false;
    if (stops.includes(marker)) return true;
    if (marker === "\\") {
      cursor.position++;
      yield* accept(cursor, ['"', "'", "\\"]);
    } else if (quote !== null) {
      // A string does not go over the end of a line.
      if (marker === quote || marker === "\n") quote = null;
      cursor.position++;
    } else if (marker === '"' || marker === "'") {
      quote = marker;
      cursor.position++;
    } else if ("{[(".includes(marker)) {
      depth++;
      cursor.position++;
    } else if (depth === 0 && marker === "]" && place === "list") {
      return true;
    } else if ("}])".includes(marker)) {
      cursor.position++;
      if (depth > 0) depth--;
      if (depth === 0 && place === "sequence") return true;
    } else if (marker === "," && depth === 0 && place === "list") {
      return true;
    } else {
      cursor.position++;
    }
  }
}
