/** What every machine reads with: look for markers, skip white space, accept literals. Each waits for the text it needs. */

import type { MarkerSet } from "./marker_set.ts";
import type { Step, TextCursor } from "./text_cursor.ts";

/** White space as the rules mean it: the ASCII kind. */
export function isSpaceCode(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}

/** Whether a text is white space alone. */
export function isSpace(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (!isSpaceCode(text.charCodeAt(index))) return false;
  return true;
}

/** Goes to the next marker and returns it, unread; null at the end of the text. The text before it is handed over as it comes. */
export function* seek(
  cursor: TextCursor,
  markers: MarkerSet,
  onText: ((text: string) => void) | null = null,
): Step<string | null> {
  for (;;) {
    const { window, position } = cursor;
    const found = markers.find(window, position);
    const end = found?.index ?? (cursor.ended ? window.length : markers.openEnd(window, position));
    if (end > position) {
      cursor.position = end;
      onText?.(window.slice(position, end));
    }
    // A literal that begins a longer one counts only once the longer one is ruled out.
    if (found !== null && (cursor.ended || !markers.opensAt(window, end))) return found.literal;
    if (cursor.ended) return null;
    if (end < window.length) yield* awaitDecision(cursor, markers.literals);
    else yield;
  }
}

/** Waits while the text at the cursor is the unfinished beginning of a literal. Each character is looked at once. */
function* awaitDecision(cursor: TextCursor, literals: readonly string[]): Step<void> {
  let seen = cursor.window.length - cursor.position;
  const text = cursor.window.slice(cursor.position);
  let open = literals.filter((literal) => literal.length > seen && literal.startsWith(text));
  while (open.length > 0 && !cursor.ended) {
    yield;
    while (open.length > 0 && cursor.position + seen < cursor.window.length) {
      const character = cursor.window[cursor.position + seen];
      open = open.filter((literal) => literal[seen] === character);
      seen++;
      if (open.some((literal) => literal.length === seen)) open = [];
    }
  }
  cursor.work += seen;
}

/** Skips white space. */
export function* skipSpace(cursor: TextCursor): Step<void> {
  for (;;) {
    const { window } = cursor;
    let position = cursor.position;
    while (position < window.length && isSpaceCode(window.charCodeAt(position))) position++;
    cursor.position = position;
    if (position < window.length || cursor.ended) return;
    yield;
  }
}

/** Whether there is another character. */
export function* hasMore(cursor: TextCursor): Step<boolean> {
  while (cursor.position === cursor.window.length) {
    if (cursor.ended) return false;
    yield;
  }
  return true;
}

/** The literal that comes next, unread; null if none does. The first of the list that fits. */
export function* peek(cursor: TextCursor, literals: readonly string[]): Step<string | null> {
  for (;;) {
    const { window, position, ended } = cursor;
    const left = window.length - position;
    let open = false;
    for (const literal of literals) {
      if (left >= literal.length) {
        if (window.startsWith(literal, position)) return literal;
      } else if (!ended && literal.startsWith(window.slice(position))) {
        open = true;
        break;
      }
    }
    if (!open) return null;
    yield* awaitDecision(cursor, literals);
  }
}

/** Reads the literal that comes next; null, and nothing read, if none of the list does. */
export function* accept(cursor: TextCursor, literals: readonly string[]): Step<string | null> {
  const literal = yield* peek(cursor, literals);
  if (literal !== null) cursor.position += literal.length;
  return literal;
}

/** Reads literals in a row, white space aside; false at the first that does not come. */
export function* acceptAll(cursor: TextCursor, literals: readonly string[]): Step<boolean> {
  for (const literal of literals) {
    yield* skipSpace(cursor);
    if ((yield* accept(cursor, [literal])) === null) return false;
  }
  return true;
}

/** Longest name or tag head that is read, in characters; what is longer is no name. */
const LONGEST_HEAD = 1024;

/** Reads up to the first character that `stop` (a global pattern of one character) finds; null if that is too far. */
export function* readUntil(cursor: TextCursor, stop: RegExp): Step<string | null> {
  let text = "";
  for (;;) {
    const { window, position } = cursor;
    stop.lastIndex = position;
    const found = stop.exec(window);
    const end = found === null ? window.length : found.index;
    const room = LONGEST_HEAD - text.length;
    cursor.position = Math.min(end, position + room);
    text += window.slice(position, cursor.position);
    if (end - position > room) return null;
    if (found !== null || cursor.ended) return text;
    yield;
  }
}
