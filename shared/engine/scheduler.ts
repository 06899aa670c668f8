/**
 * Runs requests: slots and queue, prefix cache, pauses, aborts, weight updates. It computes no tokens itself and knows
 * no wire.
 */

import type { EngineRequest } from "./engine_request.ts";
import { ABORTED, type FinishReason } from "./finish_reason.ts";
import { RadixCache } from "./radix_cache.ts";
import { type RequestEnd, runRequest } from "./run_request.ts";

/** How a pause treats running requests. */
export type PauseMode = "abort" | "retract" | "in_place";

/** Resolves after `ms`; rejects when the signal fires first. */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

/** What the scheduler is made with. */
export interface SchedulerOptions {
  readonly maxRunningRequests: number;
  /** Null: no limit. */
  readonly maxQueuedRequests: number | null;
  readonly cacheTokens: number;
  readonly firstTokenDelayMs: number;
  readonly tokenDelayMs: number;
  readonly sleep: Sleep;
  /** The server dies: nothing is answered any more. */
  readonly die: () => void;
}

/** The queue is full. */
export const QUEUE_FULL: FinishReason = {
  type: "abort",
  message: "The request queue is full.",
  status_code: 503,
  err_type: null,
};

/** While an aborting pause waits for requests to end, it aborts them again this often. */
const ABORT_AGAIN_MS = 1000;

/** The scheduler. */
export class Scheduler {
  readonly cache: RadixCache;
  readonly options: SchedulerOptions;
  readonly #requests = new Map<string, EngineRequest>();
  readonly #queue: { request: EngineRequest; start: () => void }[] = [];
  readonly #held = new Set<string>();
  #running = 0;
  #paused: PauseMode | null = null;
  #updating = false;
  #changed: (() => void)[] = [];

  /** Nothing runs yet. */
  constructor(options: SchedulerOptions) {
    this.options = options;
    this.cache = new RadixCache(options.cacheTokens);
  }

  /** Requests that hold a slot. */
  get running(): number {
    return this.#running;
  }

  /** Requests that wait for a slot. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Prompt and output tokens of running requests. */
  get runningTokens(): number {
    let tokens = 0;
    for (const { phase, generation } of this.#requests.values()) {
      if (phase === "running") tokens += generation.input.prompt.length + generation.outputIds.length;
    }
    return tokens;
  }

  /** The pause in force, or null. */
  get paused(): PauseMode | null {
    return this.#paused;
  }

  /** Whether this id is taken. */
  has(rid: string): boolean {
    return this.#requests.has(rid) || this.#held.has(rid);
  }

  /** Takes an id without a request; `release` gives it back. */
  hold(rid: string): void {
    this.#held.add(rid);
  }

  /** Gives a held id back. */
  release(rid: string): void {
    this.#held.delete(rid);
    this.#notify();
  }

  /** Resolves once new requests are let in: no pause, no weight update. */
  async admitted(signal: AbortSignal): Promise<void> {
    while ((this.#paused !== null || this.#updating) && !signal.aborted) await this.#change(signal);
  }

  /** Starts a request; its id is free. It reports through the request itself. */
  start(request: EngineRequest): void {
    this.#requests.set(request.rid, request);
    this.#notify();
    const { maxQueuedRequests } = this.options;
    const full = this.#running >= this.options.maxRunningRequests;
    if (full && maxQueuedRequests !== null && this.#queue.length >= maxQueuedRequests) {
      this.#end(request, { finish: QUEUE_FULL, inQueue: false });
      return;
    }
    void runRequest(request, this).then((end) => this.#end(request, end));
  }

  /** Waits for a slot. False: the request was aborted meanwhile. */
  async enter(request: EngineRequest): Promise<boolean> {
    request.phase = "queued";
    if (this.#running >= this.options.maxRunningRequests || this.#frozen) {
      await new Promise<void>((resolve) => {
        this.#queue.push({ request, start: resolve });
        request.signal.addEventListener("abort", () => resolve(), { once: true });
        this.#notify();
      });
      const place = this.#queue.findIndex((entry) => entry.request === request);
      if (place >= 0) {
        this.#queue.splice(place, 1);
        return false;
      }
    } else {
      this.#running++;
    }
    request.phase = "running";
    return true;
  }

  /** Gives the slot to the next in the queue. */
  leave(): void {
    this.#running--;
    this.#fill();
    this.#notify();
  }

  /** While a pause freezes running requests: resolves when it ends or the request is to end. Null: no such pause. */
  freeze(request: EngineRequest): { mode: PauseMode; thawed: Promise<void> } | null {
    if (this.#paused === null || this.#paused === "abort") return null;
    return { mode: this.#paused, thawed: this.#thawed(request.signal) };
  }

  /**
   * Aborts requests. The id must be that of a live request; all requests whose ids begin with it are aborted. An empty
   * or unknown id aborts nothing.
   */
  abort({ rid, all }: { rid: string; all: boolean }): void {
    if (!all && (rid === "" || !this.has(rid))) return;
    for (const request of [...this.#requests.values()]) {
      if (!all && !request.rid.startsWith(rid)) continue;
      if (request.missesAbort()) continue;
      const delayMs = request.faults.get("deaf")?.delayMs ?? 0;
      if (delayMs === 0) request.abort(ABORTED);
      else void this.options.sleep(delayMs).then(() => request.abort(ABORTED));
    }
  }

  /** Pauses. Under `abort` it resolves when nothing runs any more. */
  async pause(mode: PauseMode): Promise<void> {
    this.#paused = mode;
    this.#notify();
    if (mode !== "abort") return;
    for (;;) {
      this.abort({ rid: "", all: true });
      if (this.#free) return;
      await this.#changeWithin(ABORT_AGAIN_MS);
    }
  }

  /** Ends a pause. */
  resume(): void {
    this.#paused = null;
    this.#fill();
    this.#notify();
  }

  /**
   * Runs a weight update: while paused at once, else when no request is left, and no request is let in meanwhile.
   * False: the cache was to be flushed and could not be, since requests are running or queued.
   */
  async update({ flush, abortAll }: { flush: boolean; abortAll: boolean }, apply: () => void): Promise<boolean> {
    if (abortAll) this.abort({ rid: "", all: true });
    if (this.#paused === null) {
      while (this.#updating) await this.#change();
      this.#updating = true;
      while (!this.#free) await this.#change();
    }
    try {
      if (flush && !this.flush()) return false;
      apply();
      return true;
    } finally {
      this.#updating = false;
      this.#notify();
    }
  }

  /** Empties the cache; false where requests are running or queued. */
  flush(): boolean {
    if (this.#requests.size > 0) return false;
    this.cache.flush();
    return true;
  }

  /** Resolves true when nothing runs or is queued, false when the signal fires first. */
  async idle(signal: AbortSignal): Promise<boolean> {
    while (this.#requests.size > 0 && !signal.aborted) await this.#change(signal);
    return this.#requests.size === 0;
  }

  /** Whether no request runs, is queued, or is being checked. */
  get #free(): boolean {
    return this.#requests.size === 0 && this.#held.size === 0;
  }

  async #changeWithin(ms: number): Promise<void> {
    const waiting = new AbortController();
    await Promise.race([this.#change(), this.options.sleep(ms, waiting.signal).catch(() => {})]);
    waiting.abort();
  }

  /** The id is free and the scheduler idle before anybody hears of the end. */
  #end(request: EngineRequest, { finish, inQueue }: RequestEnd): void {
    this.#requests.delete(request.rid);
    request.endedInQueue = inQueue;
    request.end(finish);
    this.#notify();
  }

  get #frozen(): boolean {
    return this.#paused === "retract" || this.#paused === "in_place";
  }

  #fill(): void {
    while (!this.#frozen && this.#running < this.options.maxRunningRequests) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      this.#running++;
      next.start();
    }
  }

  async #thawed(signal: AbortSignal): Promise<void> {
    while (this.#frozen && !signal.aborted) await this.#change(signal);
  }

  #change(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#changed.push(resolve);
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #notify(): void {
    const changed = this.#changed;
    this.#changed = [];
    for (const wake of changed) wake();
  }
}
