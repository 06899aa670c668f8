/** Which workers this process itself has paused or is updating: their silence is no fault. It sends nothing. */

import { LONGEST_PAUSE_MS } from "../../core/longest_pause.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Hold } from "./silence_watch.ts";

/** Why a worker is known to be still. */
export type PauseReason = "pause" | "update";

/**
 * The marks of the workers behind one engine. One that is not lifted ends after {@linkcode LONGEST_PAUSE_MS}: a silence that
 * never counts would keep a dead call for ever.
 */
export class PauseMarks {
  readonly #clock: Clock;
  /** By worker and reason: when the mark goes by itself. */
  readonly #untilMs = new Map<string, Map<PauseReason, number>>();
  readonly #liftedAtMs = new Map<string, number>();
  #changed = new AbortController();

  /** No worker is marked. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The worker is still from now on. */
  mark(url: string, reason: PauseReason): void {
    const reasons = this.#untilMs.get(url) ?? new Map<PauseReason, number>();
    reasons.set(reason, this.#clock.now() + LONGEST_PAUSE_MS);
    this.#untilMs.set(url, reasons);
    this.#change();
  }

  /** It goes on. Unmarked workers stay so. */
  lift(url: string, reason: PauseReason): void {
    const reasons = this.#untilMs.get(url);
    if (reasons === undefined || !reasons.delete(reason)) return;
    if (reasons.size === 0) {
      this.#untilMs.delete(url);
      this.#liftedAtMs.set(url, this.#clock.now());
    }
    this.#change();
  }

  /** The pause of this worker or, with null, of any: behind a router nobody knows which one has the call. */
  of(url: string | null): Hold {
    const sinceMs = (): number => this.#liftedSinceMs(url);
    const wait = (signal: AbortSignal): Promise<void> => this.#lifted(url, signal);
    return {
      get liftedAtMs() {
        return sinceMs();
      },
      lifted: wait,
    };
  }

  /** Until when silence is expected; 0 where it is not. */
  #heldUntilMs(url: string | null): number {
    const marks = url === null ? [...this.#untilMs.values()] : [this.#untilMs.get(url) ?? new Map<string, number>()];
    const untilMs = Math.max(0, ...marks.flatMap((reasons) => [...reasons.values()]));
    return untilMs > this.#clock.now() ? untilMs : 0;
  }

  #liftedSinceMs(url: string | null): number {
    return url === null ? Math.max(0, ...this.#liftedAtMs.values()) : this.#liftedAtMs.get(url) ?? 0;
  }

  async #lifted(url: string | null, signal: AbortSignal): Promise<void> {
    for (;;) {
      const untilMs = this.#heldUntilMs(url);
      if (untilMs === 0) return;
      const either = AbortSignal.any([signal, this.#changed.signal]);
      await this.#clock.sleep(untilMs - this.#clock.now(), either).catch(() => signal.throwIfAborted());
    }
  }

  #change(): void {
    const changed = this.#changed;
    this.#changed = new AbortController();
    changed.abort();
  }
}
