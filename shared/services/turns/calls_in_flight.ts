/** The calls this process is running, by task: whom a repeat may join, and whom a finish must wait for. */

import { renderKey, type RequestUnits } from "../../core/request_units.ts";
import type { SharedCall } from "./shared_call.ts";

/** A call of this process. */
export interface LocalCall {
  readonly callId: string;
  readonly digest: string;
  readonly call: SharedCall;
  /** The request. */
  readonly units: RequestUnits;
  /** Resolves when the call has ended and everything of it is written. */
  readonly ended: Promise<void>;
}

/** Calls by task uid. */
export class CallsInFlight {
  readonly #byTask = new Map<string, Map<string, LocalCall>>();
  #closed: Error | null = null;

  /** Number of calls of all tasks. */
  get total(): number {
    let total = 0;
    for (const calls of this.#byTask.values()) total += calls.size;
    return total;
  }

  /** Number of calls of a task. */
  count(uid: string): number {
    return this.#byTask.get(uid)?.size ?? 0;
  }

  /** The call of a task that answers this digest, or null. */
  find(uid: string, digest: string): LocalCall | null {
    for (const local of this.#byTask.get(uid)?.values() ?? []) {
      if (local.digest === digest && !local.call.signal.aborted) return local;
    }
    return null;
  }

  /**
   * The calls of a task whose prompt this request repeats and goes beyond with an assistant's message, though nobody
   * can have read their whole answer yet; a part of it was shown.
   */
  answering(uid: string, request: RequestUnits): LocalCall[] {
    return this.of(uid).filter(({ units, call }) => {
      const { length } = units.units;
      return call.shown && length > 0 && request.units[length]?.kind === "assistant" &&
        request.chain[length - 1] === units.chain[length - 1] && renderKey(request) === renderKey(units);
    });
  }

  /** Every call of a task. */
  of(uid: string): LocalCall[] {
    return [...this.#byTask.get(uid)?.values() ?? []];
  }

  /** The calls of a task that answer this digest and were given up. Each may yet be committed until it has ended. */
  givenUp(uid: string, digest: string): LocalCall[] {
    return this.of(uid).filter((local) => local.digest === digest && local.call.signal.aborted);
  }

  /** Throws the reason once it was closed. */
  assertOpen(): void {
    if (this.#closed !== null) throw this.#closed;
  }

  /** From now on no call is taken, and those there are end with the reason. Resolves when none is left. */
  async close(reason: Error): Promise<void> {
    this.#closed = reason;
    this.cancelAll(reason);
    await this.idle();
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    while (this.#byTask.size > 0) {
      await Promise.all(
        Array.from(this.#byTask.values(), (calls) => Array.from(calls.values(), ({ ended }) => ended)).flat(),
      );
    }
  }

  /** Ends every call of every task; its waiters see the reason. */
  cancelAll(reason: unknown): void {
    for (const calls of this.#byTask.values()) for (const { call } of calls.values()) call.cancel(reason);
  }

  /** Adds a call until it has ended. */
  add(uid: string, local: LocalCall): void {
    const calls = this.#byTask.get(uid) ?? new Map<string, LocalCall>();
    this.#byTask.set(uid, calls);
    calls.set(local.callId, local);
    void local.ended.finally(() => {
      calls.delete(local.callId);
      if (calls.size === 0 && this.#byTask.get(uid) === calls) this.#byTask.delete(uid);
    });
  }
}
