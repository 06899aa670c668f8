/** Keeps calls away from a worker that fails, and lets one at a time try whether it is back. It calls nobody. */

import type { Clock } from "../../ports/clock.ts";

/** What came of a call: the worker served it (be it with a refusal), was at fault, or was left before it showed. */
export type CallOutcome = "served" | "fault" | "left";

/** So many faults in a row open the circuit. */
const FAULTS_TO_OPEN = 3;
const FIRST_OPEN_MS = 1000;
/** Each probe that fails doubles the wait, up to this. */
const LONGEST_OPEN_MS = 30_000;

/** One worker's circuit. */
export class CircuitBreaker {
  readonly #clock: Clock;
  #faults = 0;
  #openMs = 0;
  #opensAtMs: number | null = null;
  #probes = 0;

  /** Closed. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Half open: the wait is over, and nobody has found out yet whether the worker is back. */
  get state(): "closed" | "open" | "half_open" {
    if (this.#opensAtMs === null) return "closed";
    return this.#clock.now() < this.#opensAtMs ? "open" : "half_open";
  }

  /** When a probe may go; 0 of a closed one. Epoch milliseconds. */
  get probeAtMs(): number {
    return this.#opensAtMs ?? 0;
  }

  /** Whether a call may go: to a closed circuit any, to a half-open one a single probe. */
  get takesCalls(): boolean {
    return this.state === "closed" || (this.state === "half_open" && this.#probes === 0);
  }

  /** A call goes. The returned function takes its outcome, once. */
  begin(): (outcome: CallOutcome) => void {
    const isProbe = this.#opensAtMs !== null;
    if (isProbe) this.#probes++;
    let over = false;
    return (outcome) => {
      if (over) return;
      over = true;
      if (isProbe) this.#probes--;
      if (outcome === "served") this.#close();
      if (outcome === "fault") this.#fault(isProbe);
    };
  }

  #close(): void {
    this.#faults = 0;
    this.#openMs = 0;
    this.#opensAtMs = null;
  }

  /** Faults of calls that had begun before it opened open it no longer than it is. */
  #fault(isProbe: boolean): void {
    this.#faults++;
    if (this.#opensAtMs === null ? this.#faults < FAULTS_TO_OPEN : !isProbe) return;
    this.#openMs = Math.min(LONGEST_OPEN_MS, this.#openMs === 0 ? FIRST_OPEN_MS : 2 * this.#openMs);
    this.#opensAtMs = this.#clock.now() + this.#openMs;
  }
}
