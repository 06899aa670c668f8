/**
 * The trainer's hand on the engines: pauses, weights, versions, and how many tasks may begin meanwhile. What it keeps
 * (the closed gate, the budget) is this process's own; it knows no HTTP.
 */

import { VerbatimError } from "../../core/errors.ts";
import type { EngineAction, WorkerResult, WorkerState } from "../../ports/engine_control.ts";
import type { Model } from "../model_catalog.ts";

/** What an action came to. */
export interface UpdateReport {
  readonly action: EngineAction;
  readonly model: string;
  /** Whether every worker did it. */
  readonly ok: boolean;
  /** Whether agents' calls wait now. */
  readonly paused: boolean;
  readonly results: readonly WorkerResult[];
}

/** A model's engines as they are now. */
export interface EngineState {
  readonly model: string;
  readonly paused: boolean;
  readonly running: number;
  readonly waiting: number;
  readonly limit: number;
  /** Tasks that may still be created; null: any number. */
  readonly newTaskBudget: number | null;
  /** The weights that the workers were last told to have; null before the first time. */
  readonly toldVersion: string | null;
  readonly workers: readonly WorkerState[];
  /** Why the workers can't be listed, or null. */
  readonly reason: string | null;
}

/** When a refused task is worth another try: budgets are set anew with each update. */
const TASK_RETRY_S = 10;

/** Steers engines. */
export class EngineUpdates {
  /** By model name. A budget that was set anew is another object: what is given back to the old one is void. */
  readonly #budgets = new Map<string, { left: number }>();
  /** By model name: the weights that its workers were last told to have. */
  readonly #told = new Map<string, string>();
  /** The latest pause or continuation of a model's engines, over or not. */
  readonly #steps = new Map<string, Promise<unknown>>();

  /**
   * Has every worker do it, and tells what each made of it. Nothing is rolled back where some did not. A pause keeps new
   * generations waiting from before the first worker is asked, and ends with the first worker that continues; one that no
   * worker took changes nothing. Pauses and continuations follow each other, so that gate and workers end alike.
   * `engine_unavailable` where there is no worker to ask.
   */
  act(
    model: Model,
    action: EngineAction,
    body: { readonly [field: string]: unknown },
    signal: AbortSignal,
  ): Promise<UpdateReport> {
    if (action !== "pause" && action !== "continue") return this.#act(model, action, body, signal);
    const before = this.#steps.get(model.name) ?? Promise.resolve();
    const own = before.then(() => this.#act(model, action, body, signal));
    this.#steps.set(model.name, own.catch(() => {}));
    return own;
  }

  async #act(
    model: Model,
    action: EngineAction,
    body: { readonly [field: string]: unknown },
    signal: AbortSignal,
  ): Promise<UpdateReport> {
    const { gate } = model.generations;
    const wasPaused = gate.paused;
    if (action === "pause") gate.pause();
    let results: readonly WorkerResult[] = [];
    try {
      results = await model.control.act(action, body, signal);
    } finally {
      const some = results.some((result) => result.ok);
      if (action === "pause" && !some && !wasPaused) gate.resume();
      if (action === "continue" && some) gate.resume();
      const told = action === "set_version" ? body.new_version : action === "update_from_disk" && body.weight_version;
      if (some && typeof told === "string") this.#told.set(model.name, told);
    }
    if (results.length === 0) {
      throw new VerbatimError("engine_unavailable", `Model "${model.name}" has no workers`, { retryAfterS: 1 });
    }
    return {
      action,
      model: model.name,
      ok: results.every((result) => result.ok),
      paused: gate.paused,
      results,
    };
  }

  /** The weights that a model's workers were last told to have; null before the first time. */
  toldVersion(model: Pick<Model, "name">): string | null {
    return this.#told.get(model.name) ?? null;
  }

  /** From now on so many tasks of a model may be created; null: any number. */
  setBudget(model: Model, tasks: number | null): void {
    if (tasks === null) this.#budgets.delete(model.name);
    else this.#budgets.set(model.name, { left: tasks });
  }

  /** Takes one task of a model's budget; `busy` where none is left. The result gives it back, where no task came of it. */
  takeTask(model: Model): () => void {
    const budget = this.#budgets.get(model.name);
    if (budget === undefined) return () => {};
    if (budget.left === 0) {
      throw new VerbatimError("busy", "No new tasks are taken now: the staleness budget is used up", {
        details: { reason: "staleness budget", model: model.name },
        retryAfterS: TASK_RETRY_S,
      });
    }
    budget.left--;
    return () => void budget.left++;
  }

  /** A model's engines, asked now. */
  async stateOf(model: Model, signal: AbortSignal): Promise<EngineState> {
    const { gate } = model.generations;
    const workers = await model.control.workers(signal).catch((cause: unknown) =>
      cause instanceof Error ? cause.message : String(cause)
    );
    return {
      model: model.name,
      paused: gate.paused,
      running: gate.running,
      waiting: gate.waiting,
      limit: gate.limit,
      newTaskBudget: this.#budgets.get(model.name)?.left ?? null,
      toldVersion: this.toldVersion(model),
      workers: typeof workers === "string" ? [] : workers,
      reason: typeof workers === "string" ? workers : null,
    };
  }
}
