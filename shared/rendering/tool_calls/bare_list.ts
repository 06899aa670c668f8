/** Tells a list of Python calls without a marker from other brackets: it begins `[name(key=` or `[name()`. */

import type { TextCursor } from "./text_cursor.ts";
import type { Step } from "./text_cursor.ts";
import { accept, peek, readUntil, skipSpace } from "./reading.ts";

const NAME_STOP = /[^\w.\-\u0080-\uffff]/g;
const KEY_STOP = /[^\w\u0080-\uffff]/g;

/** A bracket that is surely none, as most are: behind it and a short name stands neither white space nor a parenthesis. */
const NO_LIST = /\[[\w.-]{0,40}[^\w.\-\s(\u0080-\uffff]/y;

/** Whether such a list begins at the cursor, which stays where it is. */
export function* beginsCallList(cursor: TextCursor): Step<boolean> {
  NO_LIST.lastIndex = cursor.position;
  if (NO_LIST.test(cursor.window)) {
    cursor.work += NO_LIST.lastIndex - cursor.position;
    return false;
  }
  const from = cursor.offset;
  cursor.keep(from);
  const isList = yield* readBeginning(cursor);
  cursor.rewind(from);
  cursor.release();
  return isList;
}

function* readBeginning(cursor: TextCursor): Step<boolean> {
  if ((yield* accept(cursor, ["["])) === null) return false;
  yield* skipSpace(cursor);
  if (!(yield* readUntil(cursor, NAME_STOP))) return false;
  yield* skipSpace(cursor);
  if ((yield* accept(cursor, ["("])) === null) return false;
  yield* skipSpace(cursor);
  if ((yield* accept(cursor, [")"])) !== null) return true;
  if (!(yield* readUntil(cursor, KEY_STOP))) return false;
  yield* skipSpace(cursor);
  return (yield* peek(cursor, ["==", "="])) === "=";
}
