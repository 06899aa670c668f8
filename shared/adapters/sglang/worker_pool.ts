/** Chooses a worker for each call, by key, load and circuit. It knows no wire. */

import type { Clock } from "../../ports/clock.ts";
import { type CallOutcome, CircuitBreaker } from "./circuit_breaker.ts";
import { rendezvousOrder } from "./rendezvous_hash.ts";

/** A worker taken for one call. */
export interface WorkerLease {
  readonly url: string;
  /** The call is over; said again, it changes nothing. */
  done(outcome: CallOutcome): void;
}

/** How a worker stands. */
export interface WorkerStanding {
  readonly circuit: "closed" | "open" | "half_open";
  /** Calls that it serves now. */
  readonly inFlight: number;
}

interface Worker {
  readonly url: string;
  readonly breaker: CircuitBreaker;
  inFlight: number;
  /** When it was last taken, counted in calls. */
  takenAt: number;
}

/**
 * A key leaves its worker when that one has at least this many calls and twice what the others have on average: below,
 * the prefix that is cached there is worth more than the wait.
 */
const OVERLOADED_FROM = 8;
const OVERLOADED_TIMES = 2;

/** The workers. */
export class WorkerPool {
  readonly #workers: readonly Worker[];
  #taken = 0;

  /** At least one URL. */
  constructor(urls: readonly string[], clock: Clock) {
    this.#workers = urls.map((url) => ({ url, breaker: new CircuitBreaker(clock), inFlight: 0, takenAt: 0 }));
  }

  /** How a worker stands; null of one that is not in the pool. */
  standing(url: string): WorkerStanding | null {
    const worker = this.#workers.find((one) => one.url === url);
    return worker === undefined ? null : { circuit: worker.breaker.state, inFlight: worker.inFlight };
  }

  /**
   * Takes the key's worker or, without a key or where that one is overloaded, the least loaded. Workers with an open
   * circuit are passed over, and so is `avoid`, which has just failed, where there is another. When every circuit is
   * open, the one whose probe is due first gets the call: it may be back, and a refusal helps nobody.
   */
  take(key: string | null, avoid: string | null = null): WorkerLease {
    const others = this.#workers.filter(({ url }) => url !== avoid);
    const choice = others.length === 0 ? this.#workers : others;
    const ready = choice.filter(({ breaker }) => breaker.takesCalls);
    const worker = ready.length === 0 ? soonest(choice) : key === null ? leastLoaded(ready) : ownOf(key, ready);
    const settle = worker.breaker.begin();
    worker.inFlight++;
    worker.takenAt = ++this.#taken;
    let over = false;
    return {
      url: worker.url,
      done(outcome) {
        if (over) return;
        over = true;
        worker.inFlight--;
        settle(outcome);
      },
    };
  }
}

function ownOf(key: string, ready: readonly Worker[]): Worker {
  const order = rendezvousOrder(key, ready.map(({ url }) => url));
  const own = ready.find(({ url }) => url === order[0])!;
  return isOverloaded(own, ready) ? leastLoaded(ready) : own;
}

function isOverloaded(own: Worker, ready: readonly Worker[]): boolean {
  if (ready.length === 1 || own.inFlight < OVERLOADED_FROM) return false;
  const others = ready.reduce((sum, { inFlight }) => sum + inFlight, -own.inFlight);
  return own.inFlight >= OVERLOADED_TIMES * others / (ready.length - 1);
}

/** Among equals the one that was taken the longest ago. */
function leastLoaded(workers: readonly Worker[]): Worker {
  return workers.reduce((best, worker) =>
    worker.inFlight < best.inFlight || (worker.inFlight === best.inFlight && worker.takenAt < best.takenAt)
      ? worker
      : best
  );
}

function soonest(workers: readonly Worker[]): Worker {
  return workers.reduce((best, worker) => worker.breaker.probeAtMs < best.breaker.probeAtMs ? worker : best);
}
