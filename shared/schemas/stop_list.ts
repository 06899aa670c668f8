/** Lists of what ends a generation. Each entry is looked for at every token, so that their number is bounded. */

import { z } from "zod";

/** Most entries. */
const MOST_STOPS = 1024;

/** A list of such entries. */
export function stopList<Entry extends z.ZodType>(entry: Entry): z.ZodArray<Entry> {
  return z.array(entry).max(MOST_STOPS, `must hold at most ${MOST_STOPS}`);
}
