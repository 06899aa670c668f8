/**
 * The history policies' walk over the requests of the main root, as they look once all of them are known: what extends
 * the series, what repeats it, what left it and came to nothing (`side`), and what left it for good. It knows places,
 * not messages.
 */

/** One request of the main root. */
export interface Step {
  /** Its number; steps come in ascending order, not without gaps. */
  readonly entry: number;
  /** Names its prompt: equal for equal units. */
  readonly prompt: unknown;
  /** The turn's entry whose prompt it repeats and goes beyond, and whether what stands in the reply's place is its echo. */
  readonly follows: { readonly entry: number; readonly accepted: boolean } | null;
  /** The entry of the turn whose reply it was answered with; null where it failed. */
  readonly served: number | null;
}

/** What a step did to the series. */
export type Fate =
  /** Starts or extends the series. */
  | { readonly type: "ok" }
  /** The latest request of the series again. */
  | { readonly type: "replay" }
  /** Touched nothing. `single`: nothing was built on it. */
  | { readonly type: "side"; readonly single: boolean }
  /** Left the series of this entry for good, and is the series from here on. */
  | { readonly type: "left"; readonly from: number };

/** The fates of all steps. */
export interface Hindsight {
  /** By entry. */
  readonly fates: ReadonlyMap<number, Fate>;
  /** The latest entry of the series; null where nothing was served. */
  readonly head: number | null;
}

/** Decides the fate of every step, knowing all of them. */
export function hindsight(steps: readonly Step[]): Hindsight {
  const walk = new Walk(steps);
  for (const step of steps) walk.decide(step);
  return { fates: walk.fates, head: walk.head?.entry ?? null };
}

class Walk {
  readonly fates = new Map<number, Fate>();
  head: Step | null = null;
  readonly #steps: readonly Step[];
  readonly #byEntry: ReadonlyMap<number, Step>;
  readonly #futures: ReadonlyMap<number, Future>;
  /** Prompts that failed where they would have extended the series, since it last grew. */
  readonly #failed = new Set<unknown>();

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.#byEntry = new Map(steps.map((step) => [step.entry, step]));
    this.#futures = futuresOf(steps);
  }

  decide(step: Step): void {
    if (this.fates.has(step.entry)) return;
    const { head } = this;
    if (head === null || this.#extends(step, head)) {
      if (head !== null && this.#isAbandoned(step, head)) {
        return this.#set(step, { type: "side", single: !this.#isBuiltOn(step) });
      }
      this.#set(step, { type: this.#failed.has(step.prompt) ? "replay" : "ok" });
      if (step.served === null) this.#failed.add(step.prompt);
      else this.#grow(step);
    } else if (step.prompt === head.prompt) {
      this.#set(step, { type: "replay" });
      if (step.served !== null) this.head = step;
    } else if (this.#lineGoesOn(step, head)) {
      this.#setAll(step);
    } else if (!this.#isBuiltOn(step) && this.#goesOnElsewhere(step)) {
      this.#set(step, { type: "side", single: true });
    } else {
      this.#set(step, { type: "left", from: head.entry });
      if (step.served !== null) this.#grow(step);
    }
  }

  #set(step: Step, fate: Fate): void {
    this.fates.set(step.entry, fate);
    if (fate.type === "side" && !fate.single) this.#setAll(step);
  }

  /** All that was built on a step is on the side with it. */
  #setAll(step: Step): void {
    const single = !this.#isBuiltOn(step);
    for (const other of this.#steps) {
      if (other.entry >= step.entry && this.#isOf(other, step)) this.fates.set(other.entry, { type: "side", single });
    }
  }

  #grow(step: Step): void {
    this.head = step;
    this.#failed.clear();
  }

  #future(step: Step): Future {
    return this.#futures.get(step.entry)!;
  }

  #isBuiltOn(step: Step): boolean {
    return this.#future(step).built;
  }

  /** Whether a step goes on from the latest prompt of the series and an echo of a reply to it. */
  #extends(step: Step, head: Step): boolean {
    return step.follows?.accepted === true && this.#promptAt(step.follows.entry) === head.prompt;
  }

  #promptAt(entry: number): unknown {
    return this.#byEntry.get(entry)?.prompt;
  }

  /** The prompts of the series: the head's, and those that it goes on from by accepted echoes. */
  #line(head: Step): Set<unknown> {
    const line = new Set<unknown>();
    for (let at: Step | undefined = head; at !== undefined;) {
      line.add(at.prompt);
      at = at.follows?.accepted === true ? this.#byEntry.get(at.follows.entry) : undefined;
    }
    return line;
  }

  /** Whether the series went back to where it stood before this step, or earlier, and grew again from there. */
  #isAbandoned(step: Step, head: Step): boolean {
    const { last } = this.#future(step);
    const after = this.#steps.filter((later) => later.entry > last && later.served !== null);
    if (after.length < 2) return false;
    const line = this.#line(head);
    const returned = new Set<unknown>();
    for (const later of after) {
      const from = later.follows === null ? null : this.#promptAt(later.follows.entry);
      if (from !== null && returned.has(from)) return true;
      if (line.has(later.prompt) || (later.follows?.accepted === true && line.has(from))) returned.add(later.prompt);
    }
    return false;
  }

  /** Whether the series itself grew after the last that was built on this step. */
  #lineGoesOn(step: Step, head: Step): boolean {
    const { last } = this.#future(step);
    for (let k = this.#steps.length - 1; k >= 0 && this.#steps[k]!.entry > last; k--) {
      if (this.#grewFrom(this.#steps[k]!, head.prompt) && !this.#isOf(this.#steps[k]!, step)) return true;
    }
    return false;
  }

  /** Whether a step goes back to a prompt by way of an accepted echo of a reply to it. */
  #grewFrom(step: Step, prompt: unknown): boolean {
    for (let at: Step | undefined = step; at?.follows;) {
      const from = this.#byEntry.get(at.follows.entry);
      if (from?.prompt === prompt) return at.follows.accepted;
      at = from;
    }
    return false;
  }

  /** Whether something came later that is neither this request again nor built on it. */
  #goesOnElsewhere(step: Step): boolean {
    return this.#steps.some((later) => later.entry > step.entry && !this.#isOf(later, step));
  }

  /** Whether a step is another one again, or built on it after it came. */
  #isOf(later: Step, step: Step): boolean {
    for (let at: Step | undefined = later; at !== undefined && at.entry >= step.entry;) {
      if (isAgain(at, step)) return true;
      at = at.follows === null ? undefined : this.#byEntry.get(at.follows.entry);
      // A reply that was served again may have been taken up from the later one: then what was built came after it.
      if (at !== undefined && at.entry < step.entry && at.prompt === step.prompt && step.served === at.entry) {
        return true;
      }
    }
    return false;
  }
}

/** The same request from the same place. */
function isAgain(one: Step, other: Step): boolean {
  return one.prompt === other.prompt && (one.follows?.entry ?? null) === (other.follows?.entry ?? null);
}

/** What comes of a step: the last entry that is it again or is built on it, and whether anything is built on it. */
interface Future {
  readonly last: number;
  readonly built: boolean;
}

/** The futures of all steps, each with those of the same request from the same place that came later. */
function futuresOf(steps: readonly Step[]): Map<number, Future> {
  const futures = new Map<number, Future>();
  /** By entry of a turn: the last entry that descends from it through steps seen so far. */
  const lastBuilt = new Map<number, number>();
  const again = new Map<unknown, Map<number | null, Future>>();
  for (const step of [...steps].reverse()) {
    const built = step.served === null ? undefined : lastBuilt.get(step.served);
    const places = again.get(step.prompt) ?? new Map<number | null, Future>();
    again.set(step.prompt, places);
    const place = step.follows?.entry ?? null;
    const later = places.get(place);
    const own = Math.max(step.entry, built ?? -1);
    const future = { last: Math.max(own, later?.last ?? -1), built: built !== undefined || later?.built === true };
    places.set(place, future);
    futures.set(step.entry, future);
    if (place !== null) lastBuilt.set(place, Math.max(lastBuilt.get(place) ?? -1, own));
  }
  return futures;
}
