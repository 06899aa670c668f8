/** The SGLang workers behind one engine: where they are, and what this process knows of them. It generates nothing. */

import { VerbatimError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { SERVER_INFO } from "./ask_by_either_name.ts";
import { EngineFailure, verbatimErrorOf } from "./engine_failure.ts";
import { PauseMarks } from "./pause_marks.ts";
import { failureOfStatus, isObject } from "./sglang_failure.ts";
import { VersionLedger } from "./version_ledger.ts";
import { WorkerPool } from "./worker_pool.ts";

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
/** How long a worker may take for a question. */
const QUESTION_MS = 3000;
/** A worker may come back as another release. */
const RELEASES_MS = 600_000;
/** Workers behind a router that were seen to disagree are asked for their versions this often, at most. */
const LEARN_AGAIN_MS = 1000;

/** The workers. Nothing is sent before the first call. */
export class SglangWorkers {
  readonly place: EnginePlace;
  readonly fetch: typeof fetch;
  readonly pauses: PauseMarks;
  readonly versions = new VersionLedger();
  /** Those that calls are sent to: the workers or, where there is one, the router alone. */
  readonly pool: WorkerPool;
  readonly #options: SglangWorkersOptions;
  #listed: { readonly list: WorkerList; readonly atMs: number } | null = null;
  #learnedAtMs = -Infinity;
  #releases: { readonly told: Promise<readonly string[]>; readonly atMs: number } | null = null;

  /** None is known to be paused. */
  constructor(options: SglangWorkersOptions) {
    const { place, clock } = options;
    this.#options = options;
    this.place = place;
    this.fetch = options.fetch ?? fetch;
    this.pauses = new PauseMarks(clock);
    this.pool = new WorkerPool(place.type === "router" ? [place.url] : place.urls, clock);
  }

  /** Headers of every call. */
  headers(routingKey: string | null = null): Headers {
    const { apiKey } = this.#options;
    const headers = new Headers({ "content-type": "application/json" });
    if (apiKey !== undefined) headers.set("authorization", `Bearer ${apiKey}`);
    if (routingKey !== null) headers.set("x-smg-routing-key", asHeader(routingKey));
    return headers;
  }

  /** The worker that serves a call sent to this URL; null where a router is or may be there: it does not say. */
  servedBy(url: string): string | null {
    return this.place.type === "workers" || this.#listed?.list.routed === false ? url : null;
  }

  /** Every worker; a router's list may be some seconds old. `engine_unavailable` where a router can't be asked. */
  async list(signal: AbortSignal): Promise<WorkerList> {
    const { place } = this;
    if (place.type === "workers") return { routed: false, workers: place.urls.map((url) => ({ url, healthy: null })) };
    const { clock } = this.#options;
    const listed = this.#listed;
    if (listed !== null && clock.now() - listed.atMs < LIST_MS) return listed.list;
    const list = await this.#askRouter(place.url, signal);
    const known = new Set(listed?.list.workers.map(({ url }) => url));
    // One that joined may have other weights than those that were asked.
    if (list.workers.some(({ url }) => !known.has(url))) this.versions.forgetCommon();
    this.#listed = { list, atMs: clock.now() };
    return list;
  }

  /** The JSON that a worker answers to a short question. Rejects as an `Error` where there is none. */
  async ask(url: string, path: string, signal: AbortSignal): Promise<unknown> {
    const response = await this.fetch(`${url}${path}`, {
      headers: this.headers(),
      signal: AbortSignal.any([signal, AbortSignal.timeout(QUESTION_MS)]),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answers ${response.status}`);
    return JSON.parse(text);
  }

  /** The releases of SGLang that the workers are, as far as they say; asked for once in a while. Never rejects. */
  releases(): Promise<readonly string[]> {
    const nowMs = this.#options.clock.now();
    if (this.#releases === null || nowMs - this.#releases.atMs >= RELEASES_MS) {
      this.#releases = { told: this.#askReleases(new AbortController().signal), atMs: nowMs };
    }
    return this.#releases.told;
  }

  async #askReleases(signal: AbortSignal): Promise<readonly string[]> {
    const list = await this.list(signal).catch(() => null);
    const infos = await Promise.all((list?.workers ?? []).map(({ url }) =>
      this.ask(url, SERVER_INFO.path, signal)
        .catch(() => this.ask(url, SERVER_INFO.oldPath, signal))
        .catch(() => null)
    ));
    const releases = infos.flatMap((info) => isObject(info) && typeof info.version === "string" ? [info.version] : []);
    // Workers that are still starting are asked again by the next.
    if (releases.length === 0) this.#releases = null;
    return releases;
  }

  /** A reply to a call that was sent to this URL named this version. Whether all workers now want asking. */
  noteVersion(url: string, version: string): boolean {
    const worker = this.servedBy(url);
    if (worker !== null) {
      this.versions.note(worker, version);
      return false;
    }
    this.versions.noteCommon(version);
    return this.versions.version(null) === null && this.#options.clock.now() - this.#learnedAtMs >= LEARN_AGAIN_MS;
  }

  /** Asks every worker which weights it has. Never rejects: what can't be learnt is not known. */
  async learnVersions(signal: AbortSignal): Promise<void> {
    this.#learnedAtMs = this.#options.clock.now();
    const list = await this.list(signal).catch(() => null);
    if (list === null) return;
    const { notes } = this.versions;
    const answers = await Promise.all(list.workers.map(async ({ url }) => {
      const info = await this.ask(url, "/model_info", signal).catch(() => null);
      const version = isObject(info) && typeof info.weight_version === "string" ? info.weight_version : null;
      return { url, version };
    }));
    this.told(list, answers, notes);
  }

  /** Every worker of a list told its version, or did not; the ledger's notes stood so when they were asked. */
  told(
    list: WorkerList,
    answers: readonly { readonly url: string; readonly version: string | null }[],
    notes: number,
  ): void {
    if (!list.routed) {
      for (const { url, version } of answers) if (version !== null) this.versions.note(url, version);
      return;
    }
    const version = answers[0]?.version ?? null;
    if (version !== null && answers.every((one) => one.version === version)) this.versions.agree(version, notes);
    else this.versions.forgetCommon();
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
        cause: cause instanceof EngineFailure ? verbatimErrorOf(cause) : cause,
        retryAfterS: 1,
      });
    }
  }
}

/** A key may be any text, a header may not: what it can't hold is written as in an address. */
function asHeader(key: string): string {
  return key.toWellFormed().replaceAll(/[^\x20-\x7e]+/g, encodeURIComponent);
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
