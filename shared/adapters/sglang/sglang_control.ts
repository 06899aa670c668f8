/** The workers behind an engine, seen and steered through SGLang's own routes. It generates nothing. */

import type { Logger } from "../../ports/logger.ts";
import type { EngineAction, EngineControl, WorkerResult, WorkerState } from "../../ports/engine_control.ts";
import { isObject, messageOf } from "./sglang_failure.ts";
import type { ListedWorker, SglangWorkers } from "./sglang_workers.ts";

/** What the control is made with. */
export interface SglangControlOptions {
  /** Shared with the engine: it learns of pauses from them. */
  readonly workers: SglangWorkers;
  readonly logger: Logger;
}

/** Where an action goes, and how long a worker may take for it. */
const ROUTES: Readonly<Record<EngineAction, { readonly path: string; readonly timeoutMs: number }>> = {
  /** In mode `abort` it waits for running requests to end. */
  pause: { path: "/pause_generation", timeoutMs: 120_000 },
  continue: { path: "/continue_generation", timeoutMs: 60_000 },
  /** Reads a checkpoint, perhaps from a network disk. */
  update_from_disk: { path: "/update_weights_from_disk", timeoutMs: 1_800_000 },
  set_version: { path: "/update_weight_version", timeoutMs: 60_000 },
  flush: { path: "/flush_cache", timeoutMs: 120_000 },
  abort_all: { path: "/abort_request", timeoutMs: 30_000 },
  release_memory: { path: "/release_memory_occupation", timeoutMs: 300_000 },
  resume_memory: { path: "/resume_memory_occupation", timeoutMs: 300_000 },
};

const CHANGES_WEIGHTS: ReadonlySet<EngineAction> = new Set(["update_from_disk", "set_version"]);

/** Longest message of a worker that is passed on. */
const MOST_MESSAGE = 500;

/** Makes the control. Nothing is sent before the first call. */
export function createSglangControl({ workers, logger }: SglangControlOptions): EngineControl {
  const send = workers.fetch;

  async function stateOf(worker: ListedWorker, signal: AbortSignal): Promise<WorkerState> {
    const { url } = worker;
    const [model, load] = await Promise.allSettled([
      workers.ask(url, "/model_info", signal),
      workers.ask(url, "/v1/loads?include=core", signal).catch(() => workers.ask(url, "/get_load", signal)),
    ]);
    const info = model.status === "fulfilled" && isObject(model.value) ? model.value : {};
    const { running, queued } = loadOf(load.status === "fulfilled" ? load.value : null);
    const reachable = model.status === "fulfilled" || load.status === "fulfilled";
    return {
      ...worker,
      reachable,
      reason: reachable ? null : reasonOf(model.reason),
      modelPath: textOf(info.model_path),
      weightVersion: textOf(info.weight_version),
      running,
      queued,
      ...standingOf(url),
    };
  }

  function standingOf(url: string): Pick<WorkerState, "circuit" | "inFlight"> {
    const standing = workers.servedBy(url) === null ? null : workers.pool.standing(url);
    return standing ?? { circuit: "unknown", inFlight: null };
  }

  async function actOn(
    url: string,
    action: EngineAction,
    body: { readonly [field: string]: unknown },
    signal: AbortSignal,
  ): Promise<WorkerResult> {
    const { path, timeoutMs } = ROUTES[action];
    // A flush takes its wait from the address, and its time after it.
    const waitS = action === "flush" && typeof body.timeout === "number" ? body.timeout : null;
    const query = waitS === null ? "" : `?timeout=${waitS}`;
    try {
      const response = await send(`${url}${path}${query}`, {
        method: "POST",
        headers: workers.headers(),
        body: JSON.stringify(action === "abort_all" ? { ...body, rid: "", abort_all: true } : body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs + 1000 * (waitS ?? 0))]),
      });
      const text = await response.text();
      const message = messageOf(text)?.slice(0, MOST_MESSAGE) ?? null;
      return { url, ok: response.ok && !deniesSuccess(text), status: response.status, message };
    } catch (cause) {
      return { url, ok: false, status: null, message: reasonOf(cause) };
    }
  }

  /** Whose new weights have the old ones' name, so that a reply's stamp does not tell which it was. */
  function unnamed(listed: readonly ListedWorker[], name: unknown): (string | null)[] {
    const served = listed.map(({ url }) => workers.servedBy(url));
    return served.filter((worker) => typeof name !== "string" || name === workers.versions.version(worker));
  }

  /** The engine's calls are told of a stillness that we make ourselves: from before it begins until it is surely over. */
  async function marked(url: string, action: EngineAction, act: () => Promise<WorkerResult>): Promise<WorkerResult> {
    const { pauses } = workers;
    if (action === "pause") {
      pauses.mark(url, "pause");
      const result = await act();
      // A worker that refused is not still. One that did not answer may be.
      if (!result.ok && result.status !== null) pauses.lift(url, "pause");
      return result;
    }
    if (action === "update_from_disk") {
      pauses.mark(url, "update");
      try {
        return await act();
      } finally {
        pauses.lift(url, "update");
      }
    }
    const result = await act();
    // Whatever came of it: nothing keeps the worker still for us any more.
    if (action === "continue") pauses.lift(url, "pause");
    return result;
  }

  return {
    async workers(signal) {
      const { notes } = workers.versions;
      const list = await workers.list(signal);
      const states = await Promise.all(list.workers.map((worker) => stateOf(worker, signal)));
      workers.told(list, states.map(({ url, weightVersion }) => ({ url, version: weightVersion })), notes);
      return states;
    },

    async act(action, body, signal) {
      const { workers: listed } = await workers.list(signal);
      const inDoubt = action === "update_from_disk" ? unnamed(listed, body.weight_version) : [];
      for (const worker of inDoubt) workers.versions.doubt(worker);
      const results = await Promise.all(
        listed.map(({ url }) => marked(url, action, () => actOn(url, action, body, signal))),
      );
      for (const worker of inDoubt) workers.versions.doubt(worker);
      logger.info("The workers were steered", {
        action,
        workers: results.length,
        failed: results.filter(({ ok }) => !ok).map(({ url, status, message }) => ({ url, status, message })),
      });
      // What is sampled from now on is measured against the new weights.
      if (CHANGES_WEIGHTS.has(action)) await workers.learnVersions(signal);
      return results;
    },
  };
}

/** Requests running and queued, from either of SGLang's two answers; null where it does not say. */
function loadOf(answer: unknown): { running: number | null; queued: number | null } {
  const listed = Array.isArray(answer) ? answer : isObject(answer) ? answer.loads : null;
  if (!Array.isArray(listed) || listed.length === 0) return { running: null, queued: null };
  const ranks = listed.filter(isObject);
  const queued = sum(ranks.map((rank) => rank.num_waiting_reqs));
  const all = sum(ranks.map((rank) => rank.num_reqs));
  const running = sum(ranks.map((rank) => rank.num_running_reqs)) ??
    (all === null || queued === null ? null : all - queued);
  return { running, queued };
}

/** Null where one of them is no number, or there is none. */
function sum(values: readonly unknown[]): number | null {
  let total = 0;
  for (const value of values) {
    if (typeof value !== "number") return null;
    total += value;
  }
  return values.length === 0 ? null : total;
}

/** Some failures come under status 200. */
function deniesSuccess(text: string): boolean {
  try {
    const reply: unknown = JSON.parse(text);
    return isObject(reply) && reply.success === false;
  } catch {
    return false;
  }
}

function reasonOf(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).slice(0, MOST_MESSAGE);
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
