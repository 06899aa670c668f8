/** Ends a task: no new calls, the running ones may commit, what is left is aborted. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Background } from "../../ports/background.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CallLeases } from "../turns/call_leases.ts";
import type { CallsInFlight } from "../turns/calls_in_flight.ts";
import type { KeptBlobs } from "../extras/kept_blobs.ts";
import type { FinishRequest, TaskService } from "./task_service.ts";
import type { TaskViews } from "../turns/task_views.ts";

const POLL_MS = 50;

/** What closing needs. */
export interface TaskCloserOptions {
  readonly tasks: TaskService;
  readonly inFlight: CallsInFlight;
  readonly leases: CallLeases;
  readonly views: TaskViews;
  readonly blobs: KeptBlobs;
  readonly clock: Clock;
  readonly background: Background;
}

/** Finishes and drops tasks together with their calls in flight. */
export class TaskCloser {
  readonly #options: TaskCloserOptions;

  constructor(options: TaskCloserOptions) {
    this.#options = options;
  }

  /** Refuses new calls, waits up to `waitMs` for running ones, aborts the rest, closes. A finished task stays as it is. */
  async finish(
    taskId: string,
    request: FinishRequest & { readonly waitMs: number },
  ): Promise<{ task: TaskRecord; closedNow: boolean }> {
    const { tasks, inFlight, leases, clock } = this.#options;
    const task = await tasks.startClosing(taskId);
    if (task.status !== "finished") {
      const deadlineMs = clock.now() + request.waitMs;
      for (;;) {
        const own = inFlight.of(task.uid);
        if (own.length === 0 && await leases.countElsewhere(task, new Set()) === 0) break;
        const leftMs = deadlineMs - clock.now();
        if (leftMs <= 0) break;
        const timer = new AbortController();
        await Promise.race([
          clock.sleep(Math.min(POLL_MS, leftMs), timer.signal).catch(() => {}),
          ...(own.length === 0 ? [] : [Promise.all(own.map((local) => local.ended))]),
        ]);
        timer.abort();
      }
      // A call of another process that is still running can't commit once the task is closed.
      await this.#abortOwn(task);
    }
    return await tasks.close(taskId, request);
  }

  /** Drops the task at once: its calls are aborted, and none can commit. */
  async drop(taskId: string): Promise<TaskRecord> {
    const dropped = await this.#options.tasks.drop(taskId);
    await this.#abortOwn(dropped);
    this.#options.views.drop(dropped.uid);
    // What can't be removed now goes when it has expired.
    this.#options.background.run("remove a dropped task's blobs", this.#options.blobs.removeOutside(dropped));
    return dropped;
  }

  /** Number of a task's calls in flight, those of other processes included as far as they have said so. */
  async callsInFlight(task: TaskRecord): Promise<number> {
    const own = this.#options.inFlight.of(task.uid).map((local) => local.callId);
    return own.length + await this.#options.leases.countElsewhere(task, new Set(own));
  }

  async #abortOwn(task: TaskRecord): Promise<void> {
    const own = this.#options.inFlight.of(task.uid);
    for (const local of own) {
      local.call.cancel(new VerbatimError("task_closed", `The task "${task.taskId}" was closed during the call`));
    }
    await Promise.all(own.map((local) => local.ended));
  }
}
