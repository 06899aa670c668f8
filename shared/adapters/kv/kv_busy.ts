/** Trying again while the database is locked by another handle. It knows neither keys nor values. */

import { VerbatimError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";

const FIRST_DELAY_MS = 4;
const LONGEST_DELAY_MS = 250;
/** Seconds after which a caller may try again what was given up. */
const RETRY_AFTER_S = 1;

export interface BusyRetry {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly busyDeadlineMs: number;
}

/**
 * Whether the database refused because another connection holds its lock, so that nothing of the operation happened.
 * One commit of a batch that failed reports the lock, the others of it only that the batch failed.
 */
export function isBusyError(error: unknown): boolean {
  return error instanceof Error && /database (table )?is (locked|busy)|batch transaction failed/i.test(error.message);
}

/** Milliseconds to wait before the next attempt; `attempt` counts from 0. Exponential, half of it random. */
export function busyDelayMs(attempt: number, random: () => number): number {
  const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt, 16));
  return longest / 2 + random() * longest / 2;
}

/** The error of what was given up. */
export function busyError(waitedMs: number, cause?: unknown): VerbatimError {
  return new VerbatimError(
    "not_ready",
    `The store's database stayed locked for ${Math.round(waitedMs)} ms; try again later.`,
    { retryAfterS: RETRY_AFTER_S, cause },
  );
}

/** Runs a read until the database is not locked; `not_ready` after the deadline. Other errors are thrown as `internal`. */
export async function retryWhileBusy<T>(read: () => Promise<T>, retry: BusyRetry): Promise<T> {
  const startedAtMs = retry.clock.now();
  for (let attempt = 0;; attempt++) {
    try {
      return await read();
    } catch (cause) {
      if (cause instanceof VerbatimError) throw cause;
      if (!isBusyError(cause)) throw new VerbatimError("internal", "The store could not read.", { cause });
      const waitedMs = retry.clock.now() - startedAtMs;
      if (waitedMs >= retry.busyDeadlineMs) throw busyError(waitedMs, cause);
    }
    await retry.clock.sleep(busyDelayMs(attempt, retry.random));
  }
}
