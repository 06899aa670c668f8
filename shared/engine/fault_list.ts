/** The faults that are armed, and the plan they make for one request. */

import type { Fault, FaultRule } from "./fault.ts";

/** The request a plan is made for. `promptTail` is only read where a rule asks. */
export interface FaultSubject {
  readonly rid: string;
  readonly stream: boolean;
  readonly scoring: boolean;
  readonly promptTail: () => string;
}

/** Faults of one kind. */
export type FaultOf<Kind extends Fault["kind"]> = Extract<Fault, { kind: Kind }>;

/** What goes wrong with one request. Where two faults of a kind hit, the one armed first counts. */
export class FaultPlan {
  readonly #faults: readonly Fault[];

  /** The faults in the order they were armed. */
  constructor(faults: readonly Fault[]) {
    this.#faults = faults;
  }

  /** The fault of this kind, or null. */
  get<Kind extends Fault["kind"]>(kind: Kind): FaultOf<Kind> | null {
    const found = this.#faults.find((fault): fault is FaultOf<Kind> => fault.kind === kind);
    return found ?? null;
  }

  /** All faults. */
  get all(): readonly Fault[] {
    return this.#faults;
  }
}

const NO_FAULTS = new FaultPlan([]);

interface Armed {
  readonly rule: FaultRule;
  seen: number;
  hits: number;
}

/** Armed faults. */
export class FaultList {
  #armed: Armed[] = [];

  /** Arms a fault. */
  add(rule: FaultRule): void {
    this.#armed.push({ rule, seen: 0, hits: 0 });
  }

  /** Disarms all. Requests that are running keep their plan. */
  clear(): void {
    this.#armed = [];
  }

  /** The rules and how often each has hit. */
  list(): { rule: FaultRule; hits: number }[] {
    return this.#armed.map(({ rule, hits }) => ({ rule, hits }));
  }

  /** The plan for a new request; it is counted by every rule whose conditions it meets. */
  plan(subject: FaultSubject): FaultPlan {
    if (this.#armed.length === 0) return NO_FAULTS;
    const faults: Fault[] = [];
    for (const armed of this.#armed) {
      const when = armed.rule.when ?? {};
      if (when.ridPrefix !== undefined && !subject.rid.startsWith(when.ridPrefix)) continue;
      if (when.stream !== undefined && when.stream !== subject.stream) continue;
      if (when.scoring !== undefined && when.scoring !== subject.scoring) continue;
      if (when.promptTail !== undefined && !subject.promptTail().includes(when.promptTail)) continue;
      armed.seen++;
      if (when.nth !== undefined && armed.seen !== when.nth) continue;
      if (when.times !== undefined && armed.hits >= when.times) continue;
      armed.hits++;
      faults.push(armed.rule.fault);
    }
    return faults.length === 0 ? NO_FAULTS : new FaultPlan(faults);
  }
}
