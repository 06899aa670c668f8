/** One request in flight: its phase, its end, and who waits for it. It does not run itself. */

import type { FaultPlan } from "./fault_list.ts";
import { ABORTED, type FinishReason } from "./finish_reason.ts";
import type { Generation } from "./generation.ts";
import type { ExpertShape } from "./routed_experts.ts";

/** Where a request stands. */
export type RequestPhase = "queued" | "running" | "finished";

/** One request. */
export class EngineRequest {
  readonly rid: string;
  readonly generation: Generation;
  readonly faults: FaultPlan;
  /** The model's experts, or null where it has none or does not tell. */
  readonly experts: ExpertShape | null;
  /** Tokens drafted a round by speculative decoding, or null without it. */
  readonly draftTokens: number | null;
  phase: RequestPhase = "queued";
  finish: FinishReason | null = null;
  /** Whether it ended while it was in the queue: its answer then lacks most of `meta_info`. */
  endedInQueue = false;
  cachedTokens = 0;
  retractions = 0;
  /** Whether its last id is sampled: nobody sees that id before the end is known. */
  ending = false;
  /** Whether nobody will read the answer. */
  clientGone = false;
  readonly startedAtMs: number;
  readonly #version: () => string;
  #endVersion: string | null = null;
  readonly #abort = new AbortController();
  #waiters: (() => void)[] = [];
  #deafTo: number;
  #abortReason: FinishReason | null = null;

  /** `generation` carries the id and everything asked for. */
  constructor(generation: Generation, options: {
    faults: FaultPlan;
    experts: ExpertShape | null;
    draftTokens: number | null;
    startedAtMs: number;
    version: () => string;
  }) {
    this.rid = generation.input.item.rid;
    this.generation = generation;
    this.faults = options.faults;
    this.experts = options.experts;
    this.draftTokens = options.draftTokens;
    this.startedAtMs = options.startedAtMs;
    this.#version = options.version;
    this.#deafTo = options.faults.get("deaf")?.aborts ?? 0;
  }

  /** Fires when the request is to end early. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The engine's weight version now, or when this request ended: one string, whatever it was sampled with. */
  get weightVersion(): string {
    return this.#endVersion ?? this.#version();
  }

  /** Why it is to end early, or null. */
  get abortReason(): FinishReason | null {
    return this.#abortReason;
  }

  /** Whether this abort is one of those a `deaf` request misses; counts it. */
  missesAbort(): boolean {
    if (this.#deafTo === 0) return false;
    this.#deafTo--;
    return true;
  }

  /** Asks it to end early; takes effect where it next looks. */
  abort(reason: FinishReason = ABORTED): void {
    if (this.finish !== null || this.#abortReason !== null) return;
    this.#abortReason = reason;
    this.#abort.abort();
  }

  /** Ends it. */
  end(finish: FinishReason): void {
    if (this.finish !== null) return;
    this.finish = finish;
    this.#endVersion = this.#version();
    this.phase = "finished";
    this.generation.text.end(finish, this.generation.outputIds);
    this.notify();
  }

  /** Resolves when there are at least `count` ids, or the end. */
  async reaches(count: number): Promise<void> {
    while (this.finish === null && (this.ending || this.generation.outputIds.length < count)) {
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Wakes those who wait. */
  notify(): void {
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}
