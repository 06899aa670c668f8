/** Whose action a turn is to be under roll-in: a pure decision. It knows neither the teacher nor how turns are made. */

import { digestOf } from "./digest.ts";
import type { Forest } from "./forest.ts";
import type { Link } from "./turn_history.ts";

/** Which turns of a task the teacher executes. */
export type Rollin =
  /** Each with probability `beta`, drawn from `seed`. */
  | { readonly kind: "mixture"; readonly beta: number; readonly seed: number }
  /** The first so many of a line. */
  | { readonly kind: "prefix"; readonly turns: number };

/** A draw's hash gives this many hex digits, 52 bits: as many as a double in [0, 1) holds exactly. */
const DRAW_DIGITS = 13;

/**
 * Whether the turn at this position is the teacher's. Nothing but the roll-in and the position decides: the same in
 * every process, for every retry, and in another task of the same seed. A turn that is the teacher's at one beta is so
 * at every higher one.
 */
export function isTeachersTurn(rollin: Rollin, position: number): boolean {
  switch (rollin.kind) {
    case "prefix":
      return position < rollin.turns;
    case "mixture":
      return draw(rollin.seed, position) < rollin.beta;
  }
}

/**
 * Number of replies on a turn's line before it. `related` is the longest earlier prompt that its request repeats and goes
 * beyond. Samples of one prompt have one position, and examples that nobody sampled here count as nothing.
 */
export function turnPosition(forest: Forest, related: Link | null): number {
  let position = 0;
  for (let link = related; link !== null; link = forest.turn(link.turn).history.related) {
    // Without a reply in its place the request asks again, otherwise, at the same position.
    if (link.echo !== "missing") position++;
  }
  return position;
}

/** Uniform in [0, 1). */
function draw(seed: number, position: number): number {
  return parseInt(digestOf("rollin", seed, position).slice(0, DRAW_DIGITS), 16) / 16 ** DRAW_DIGITS;
}
