/** Marks calls in flight for other processes, and waits for theirs. */

import type { TaskRecord } from "../core/task.ts";
import type { Background } from "../ports/background.ts";
import type { Clock } from "../ports/clock.ts";
import type { TaskStore } from "../ports/task_store.ts";
import type { SharedCall } from "./shared_call.ts";
import type { TaskView } from "./task_views.ts";

/** A lease runs out this long after its process stopped renewing it. */
const LEASE_MS = 30_000;
const RENEW_MS = 10_000;
const POLL_MS = 100;

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
  take(task: TaskRecord, call: { callId: string; digest: string; rid: string }): { release(): void } {
    const { store, clock, background } = this.#options;
    const released = new AbortController();
    const { callId, digest, rid } = call;
    const startedAtMs = clock.now();
    const renew = async () => {
      while (!released.signal.aborted) {
        await store.putCall(task, { callId, digest, rid, startedAtMs, untilMs: clock.now() + LEASE_MS });
        await clock.sleep(RENEW_MS, released.signal).catch(() => {});
      }
      // A commit removes the lease with the turn; a renewal that crossed it, or a failed call, leaves it to us.
      await store.removeCall(task.uid, callId);
    };
    background.run("renew the lease of a call", renew());
    return { release: () => released.abort() };
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

  /** Whether any process has a call of this task in flight. */
  async anyElsewhere(task: TaskRecord, own: ReadonlySet<string>): Promise<boolean> {
    const { store, clock } = this.#options;
    const leases = await store.listCalls(task.uid);
    return leases.some((lease) => !own.has(lease.callId) && lease.untilMs > clock.now());
  }
}
