/** The SGLang workers behind one engine: where they are, and what this process knows of them. It generates nothing. */

import { VerbatimError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { PauseMarks } from "./pause_marks.ts";
import { failureOfStatus, isObject, RetryableFailure } from "./sglang_failure.ts";

/** Where an engine is. */
export type EnginePlace =
  /** A router that lists its workers, or a single worker. */
  | { readonly type: "router"; readonly url: string }
  /** Workers that this process itself chooses among; at least one. */
  | { readonly type: "workers"; readonly urls: readonly [string, ...string[]] };

/** What the workers are made with. */
export interface SglangWorkersOptions {
  readonly place: EnginePlace;
  readonly apiKey?: string | undefined;
  readonly clock: Clock;
  readonly fetch?: typeof fetch | undefined;
}

/** A worker as it is listed. */
export interface ListedWorker {
  readonly url: string;
  /** Whether the router sends it requests; null where there is none, or it does not say. */
  readonly healthy: boolean | null;
}

/** What is behind an engine. */
export interface WorkerList {
  /** Whether a router stands before the workers. */
  readonly routed: boolean;
  readonly workers: readonly ListedWorker[];
}

/** A router's list is asked for again after so long. */
const LIST_MS = 5000;
const LIST_TIMEOUT_MS = 5000;

/** The workers. Nothing is sent before the first call. */
export class SglangWorkers {
  readonly place: EnginePlace;
  readonly fetch: typeof fetch;
  readonly pauses: PauseMarks;
  readonly #options: SglangWorkersOptions;
  #listed: { readonly list: WorkerList; readonly atMs: number } | null = null;

  /** None is known to be paused. */
  constructor(options: SglangWorkersOptions) {
    this.#options = options;
    this.place = options.place;
    this.fetch = options.fetch ?? fetch;
    this.pauses = new PauseMarks(options.clock);
  }

  /** Headers of every call. */
  headers(routingKey: string | null = null): Headers {
    const { apiKey } = this.#options;
    const headers = new Headers({ "content-type": "application/json" });
    if (apiKey !== undefined) headers.set("authorization", `Bearer ${apiKey}`);
    if (routingKey !== null) headers.set("x-smg-routing-key", routingKey);
    return headers;
  }

  /** Every worker; a router's list may be some seconds old. `engine_unavailable` where a router can't be asked. */
  async list(signal: AbortSignal): Promise<WorkerList> {
    const { place } = this;
    if (place.type === "workers") return { routed: false, workers: place.urls.map((url) => ({ url, healthy: null })) };
    const { clock } = this.#options;
    const listed = this.#listed;
    if (listed !== null && clock.now() - listed.atMs < LIST_MS) return listed.list;
    const list = await this.#askRouter(place.url, signal);
    this.#listed = { list, atMs: clock.now() };
    return list;
  }

  /** A worker has no such list and is its own. */
  async #askRouter(url: string, signal: AbortSignal): Promise<WorkerList> {
    try {
      const response = await this.fetch(`${url}/workers`, {
        headers: this.headers(),
        signal: AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]),
      });
      const text = await response.text();
      if (response.status >= 500) throw failureOfStatus(response.status, text, response.headers.get("retry-after"));
      const workers = response.ok ? workersIn(text) : null;
      return workers === null ? { routed: false, workers: [{ url, healthy: null }] } : { routed: true, workers };
    } catch (cause) {
      signal.throwIfAborted();
      throw new VerbatimError("engine_unavailable", "The router's workers can't be listed", {
        cause: cause instanceof RetryableFailure ? cause.error : cause,
        retryAfterS: 1,
      });
    }
  }
}

/** The workers of a router's answer; null where it is none. Every field is optional. */
function workersIn(text: string): ListedWorker[] | null {
  let listed: unknown;
  try {
    listed = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(listed) || !Array.isArray(listed.workers)) return null;
  return listed.workers.flatMap((worker) => {
    if (!isObject(worker) || typeof worker.url !== "string") return [];
    const healthy = worker.is_healthy ?? worker.healthy;
    return [{
      url: worker.url.replace(/\/+$/, ""),
      healthy: typeof healthy === "boolean" ? healthy : null,
    }];
  });
}
