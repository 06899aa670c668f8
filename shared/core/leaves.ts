/** The rows of a task: one a leaf, the main line first. It knows turns by number and role, not their tokens. */

import type { Forest } from "./forest.ts";
import type { Judgement, TurnRole } from "./judgement.ts";

/** One row: the path to a turn along the series extended. */
export interface Leaf {
  /** The last turn. */
  readonly turn: number;
  /** Its role. */
  readonly role: TurnRole;
  /** The turns from the first of the series to this one. */
  readonly path: readonly number[];
}

/** The rows of a judged task: the main line (to its latest turn, even where others went on from there), then every other leaf by number. */
export function leaves(forest: Forest, judgement: Judgement): Leaf[] {
  const extended = new Set<number>();
  for (const { turn } of judgement.turns) {
    const { parent } = forest.turn(turn);
    if (parent !== null) extended.add(parent);
  }
  const main = judgement.mainLine.at(-1);
  const ends = judgement.turns.filter(({ turn }) => turn !== main && !extended.has(turn));
  const rest = [...ends.filter(({ role }) => role === "main"), ...ends.filter(({ role }) => role !== "main")];
  const first = main === undefined ? [] : [judgement.turns[main]!];
  return [...first, ...rest].map(({ turn, role }) => ({ turn, role, path: forest.path(turn) }));
}
