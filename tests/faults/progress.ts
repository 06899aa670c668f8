/** Counts what happens in a run, so that faults come at a count and not at a time. */

import type { Moment } from "./fault_plan.ts";

/** The counts. */
export class Progress {
  readonly #counts: Record<Moment, number> = { asked: 0, piece: 0, heard: 0 };
  #waiting: { readonly moment: Moment; readonly nth: number; readonly due: () => void }[] = [];

  /** Counts one; whoever waited for it is called before this returns. */
  count(moment: Moment): void {
    const count = ++this.#counts[moment];
    const due = this.#waiting.filter((wait) => wait.moment === moment && wait.nth <= count);
    if (due.length === 0) return;
    this.#waiting = this.#waiting.filter((wait) => !due.includes(wait));
    for (const wait of due) wait.due();
  }

  /** Calls once the nth has happened; never, where it does not. */
  at(moment: Moment, nth: number, due: () => void): void {
    this.#waiting.push({ moment, nth, due });
  }

  /** What was counted, for messages. */
  toString(): string {
    return JSON.stringify(this.#counts);
  }
}
