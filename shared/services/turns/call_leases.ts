/** Marks calls in flight for other processes, and waits for theirs. */

import type { TaskRecord } from "../../core/task.ts";
import type { Background } from "../../ports/background.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import type { SharedCall } from "./shared_call.ts";
import type { TaskView } from "./task_views.ts";

/**
 * How long a lease holds without being renewed: as long as its call has run already, within these bounds. What a dead
 * process leaves behind keeps a repeat waiting no longer than its own work was worth.
 */
const SHORTEST_LEASE_MS = 2_000;
const LONGEST_LEASE_MS = 30_000;
/** It is renewed when this part of it has passed. */
const RENEWED_AFTER = 1 / 3;
const POLL_MS = 100;
/** A call that is over sooner leaves no lease: by the time another process could look for one there is its turn. */
const FIRST_AFTER_MS = 20;
/** Ends the wait between renewals; made once, since an error without one is made with every abort. */
const STOPPED = new Error("The lease is not renewed any more");

/** A call's lease. */
export interface HeldLease {
  /** Renews no more. Resolves when no write of it is under way; what is left is then the commit's to remove, or `release`'s. */
  stop(): Promise<void>;
  /** Gives it up. `removed`: a commit removed it after `stop`. */
  release(options: { readonly removed: boolean }): void;
}

/** What the leases need. */
export interface CallLeasesOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly background: Background;
}

/** Leases of this process's calls. */
export class CallLeases {
  readonly #options: CallLeasesOptions;

  constructor(options: CallLeasesOptions) {
    this.#options = options;
  }

  /** Takes a lease and renews it until it is released. Writing it is not waited for: it helps repeats, no commit depends on it. */
  take(task: TaskRecord, call: { callId: string; digest: string; rid: string }): HeldLease {
    const { store, clock, background } = this.#options;
    const stopped = new AbortController();
    const removed = Promise.withResolvers<boolean>();
    const { callId, digest, rid } = call;
    const startedAtMs = clock.now();
    let written = false;
    const renew = async () => {
      await clock.sleep(FIRST_AFTER_MS, stopped.signal).catch(() => {});
      while (!stopped.signal.aborted) {
        const nowMs = clock.now();
        const leaseMs = Math.min(Math.max(nowMs - startedAtMs, SHORTEST_LEASE_MS), LONGEST_LEASE_MS);
        // One that fails is tried again with the next: whether the store is well, the commit will tell.
        written = true;
        await store.putCall(task, { callId, digest, rid, startedAtMs, untilMs: nowMs + leaseMs }).catch(() => {});
        await clock.sleep(leaseMs * RENEWED_AFTER, stopped.signal).catch(() => {});
      }
    };
    const renewing = renew();
    const end = async () => {
      if (!await removed.promise && written) await store.removeCall(task.uid, callId);
    };
    background.run("renew the lease of a call", renewing);
    background.run("remove the lease of a call", renewing.then(end, end));
    const stop = () => {
      stopped.abort(STOPPED);
      return renewing.catch(() => {});
    };
    return {
      stop,
      release(options) {
        void stop();
        removed.resolve(options.removed);
      },
    };
  }

  /**
   * Waits while another process runs the same request. The turn that came of it, or null: nobody runs it, or it came to
   * nothing.
   */
  async answerElsewhere(
    task: TaskRecord,
    view: TaskView,
    running: { readonly digest: string; readonly callId: string; readonly call: SharedCall },
  ): Promise<number | null> {
    const { store, clock } = this.#options;
    for (;;) {
      const leases = await store.listCalls(task.uid);
      const underWay = leases.some((lease) =>
        lease.digest === running.digest && lease.callId !== running.callId && lease.untilMs > clock.now()
      );
      // Looked up after the lease: a commit removes the lease and names the turn in one write.
      const turn = await store.getRepeat(task.uid, running.digest);
      if (turn !== null) {
        const current = await store.getTask(task.taskId);
        if (current !== null) await view.catchUp(store, current.task);
        return turn;
      }
      if (!underWay) return null;
      await clock.sleep(POLL_MS, running.call.signal);
    }
  }

  /** Number of a task's calls that other processes have in flight; `own` are the ids of this one's. */
  async countElsewhere(task: TaskRecord, own: ReadonlySet<string>): Promise<number> {
    const { store, clock } = this.#options;
    const leases = await store.listCalls(task.uid);
    return leases.filter((lease) => !own.has(lease.callId) && lease.untilMs > clock.now()).length;
  }
}
