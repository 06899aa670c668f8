/**
 * Who may generate now: so many at once, the others wait their turn, and nobody enters while the engines are paused. It
 * does not know what is generated.
 */

import { VerbatimError } from "../../core/errors.ts";
import { LONGEST_PAUSE_MS } from "../../core/longest_pause.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Slot } from "../teacher/slots.ts";

/** What a gate is made with. */
export interface EngineGateOptions {
  /** Generations at once; at least 1. */
  readonly mostRunning: number;
  /** Generations that wait; one more is refused. */
  readonly mostWaiting: number;
  readonly clock: Clock;
}

/** Departures that the pace is told from. */
const PACE_OF = 64;
/** What a refused caller is told where no pace is known, and at most. */
const USUAL_RETRY_S = 5;
const LONGEST_RETRY_S = 60;

/**
 * A gate with a fair queue: keys take turns, and within a key the order of coming holds. So a key that asks for
 * thousands keeps no other waiting for longer than one generation a key.
 */
export class EngineGate {
  readonly #options: EngineGateOptions;
  #running = 0;
  #waiting = 0;
  #paused = false;
  #pausedAtMs = 0;
  /** Ends the wait for a pause that is too long; null where nobody waits for one. */
  #patience: AbortController | null = null;
  /** Who was inside before and was put out: they go first. */
  readonly #returning = new Set<() => void>();
  /** Who waits, by key; the key that is due next comes first. */
  readonly #queues = new Map<string, Set<() => void>>();
  /** When places were given back, the latest last. */
  readonly #left: number[] = [];

  constructor(options: EngineGateOptions) {
    this.#options = options;
  }

  /** Generations inside. */
  get running(): number {
    return this.#running;
  }

  /** Generations that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Generations that may be inside. */
  get limit(): number {
    return this.#options.mostRunning;
  }

  /** Whether it is closed. */
  get paused(): boolean {
    return this.#paused;
  }

  /**
   * Nobody enters any more. Who is inside stays. A pause that nobody ends ends by itself after {@linkcode LONGEST_PAUSE_MS}:
   * whoever made it may be gone, and who waits would wait for ever.
   */
  pause(): void {
    this.#stopPatience();
    this.#paused = true;
    this.#pausedAtMs = this.#options.clock.now();
    this.#startPatience();
  }

  /** Opens again. */
  resume(): void {
    this.#stopPatience();
    this.#paused = false;
    this.#admit();
  }

  /**
   * A place inside. Rejects with the signal's reason when that aborts first, and with `busy` where too many wait already.
   * `returning`: it was inside before and goes on; it is never refused and waits for nobody who comes anew.
   */
  async enter(key: string, options: { readonly returning: boolean }, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    if (this.#paused && this.#pauseLeftMs() <= 0) this.resume();
    if (!this.#paused && this.#running < this.#options.mostRunning && this.#waiting === 0) this.#running++;
    else if (options.returning) await this.#wait(this.#returning, signal);
    else await this.#queue(key, signal);
    let inside = true;
    return {
      [Symbol.dispose]: () => {
        if (inside) this.#leave();
        inside = false;
      },
    };
  }

  async #queue(key: string, signal: AbortSignal): Promise<void> {
    if (this.#waiting >= this.#options.mostWaiting) {
      throw new VerbatimError("busy", "Too many calls wait for the engine", {
        details: { waiting: this.#waiting },
        retryAfterS: this.#retryAfterS(),
      });
    }
    const queue = this.#queues.get(key) ?? new Set();
    this.#queues.set(key, queue);
    try {
      await this.#wait(queue, signal);
    } catch (reason) {
      if (queue.size === 0 && this.#queues.get(key) === queue) this.#queues.delete(key);
      throw reason;
    }
  }

  /** Waits in a line until a place is given. The signal takes it out of the line, unless the place was given before. */
  #wait(line: Set<() => void>, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = (): void => {
      line.delete(enter);
      this.#waiting--;
      if (this.#waiting === 0) this.#stopPatience();
      reject(signal.reason);
    };
    const enter = (): void => {
      signal.removeEventListener("abort", onAbort);
      line.delete(enter);
      this.#waiting--;
      this.#running++;
      resolve();
    };
    line.add(enter);
    this.#waiting++;
    signal.addEventListener("abort", onAbort, { once: true });
    this.#startPatience();
    return promise;
  }

  #pauseLeftMs(): number {
    return this.#pausedAtMs + LONGEST_PAUSE_MS - this.#options.clock.now();
  }

  /** While somebody waits for a pause to end, its longest time is waited for, too. */
  #startPatience(): void {
    if (!this.#paused || this.#waiting === 0 || this.#patience !== null) return;
    this.#patience = new AbortController();
    this.#options.clock.sleep(this.#pauseLeftMs(), this.#patience.signal).then(() => this.resume(), () => {});
  }

  #stopPatience(): void {
    this.#patience?.abort();
    this.#patience = null;
  }

  #leave(): void {
    this.#running--;
    this.#left.push(this.#options.clock.now());
    if (this.#left.length > PACE_OF) this.#left.shift();
    this.#admit();
  }

  #admit(): void {
    while (!this.#paused && this.#running < this.#options.mostRunning) {
      const enter = this.#next();
      if (enter === null) return;
      enter();
    }
  }

  /** Whose turn it is; a key that had its turn goes behind the others. */
  #next(): (() => void) | null {
    const [returning] = this.#returning;
    if (returning !== undefined) return returning;
    for (const [key, queue] of this.#queues) {
      this.#queues.delete(key);
      const [first] = queue;
      if (first === undefined) continue;
      if (queue.size > 1) this.#queues.set(key, queue);
      return first;
    }
    return null;
  }

  /** When a place in the queue is likely to be free: at the pace of late, all who wait now have had their turn. */
  #retryAfterS(): number {
    const [first] = this.#left;
    const last = this.#left.at(-1);
    if (first === undefined || last === undefined || this.#paused) return USUAL_RETRY_S;
    const passedMs = this.#options.clock.now() - first;
    const waitS = this.#waiting * passedMs / this.#left.length / 1000;
    return Math.min(LONGEST_RETRY_S, Math.max(1, Math.ceil(waitS)));
  }
}
