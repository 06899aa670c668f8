/** Tells SGLang workers to abort a request until it has ended. It knows neither how it was sent nor what came of it. */

import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SglangWorkers } from "./sglang_workers.ts";

/** What aborting needs. */
export interface AbortOptions {
  readonly workers: SglangWorkers;
  /** The worker that serves the request; null where nobody knows which one does. */
  readonly url: string | null;
  /** Resolves when the request's own call has ended; null where there is none to wait for. */
  readonly over: Promise<void> | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** An abort is fire-and-forget on the engine's side and may miss a request between queue and batch: it is repeated. */
const FIRST_GAP_MS = 250;
const LONGEST_GAP_MS = 4000;
/** Where the call's end is not to be seen. */
const BLIND_TRIES = 3;
/** Where it is: so long it is waited for. */
const LONGEST_WAIT_MS = 15_000;
const SHORT_CALL_MS = 5000;

/**
 * Aborts every request whose id begins with `rid`, on the worker that serves it or on every worker, again and again
 * until its call has ended or a bound is reached. Never throws; a worker that is not reached is logged.
 */
export async function abortOnWorkers(rid: string, options: AbortOptions): Promise<void> {
  const { over, clock, logger } = options;
  const untilMs = clock.now() + LONGEST_WAIT_MS;
  let ended = false;
  const end = over?.then(() => {
    ended = true;
  });
  for (let tries = 1, gapMs = FIRST_GAP_MS;; tries++) {
    await tell(rid, options);
    if (end === undefined && tries === BLIND_TRIES) return;
    if (ended) return;
    if (clock.now() >= untilMs) {
      logger.warn("A request was aborted and its call does not end", { rid, tries });
      return;
    }
    const waiting = new AbortController();
    const gap = clock.sleep(gapMs, waiting.signal).catch(() => {});
    await (end === undefined ? gap : Promise.race([gap, end]));
    waiting.abort();
    if (ended) return;
    if (end !== undefined) gapMs = Math.min(2 * gapMs, LONGEST_GAP_MS);
  }
}

async function tell(rid: string, options: AbortOptions): Promise<void> {
  const { logger } = options;
  const urls = await urlsOf(options).catch((cause: unknown) => {
    logger.debug("The workers to abort on can't be listed", { rid, cause: String(cause) });
    return fallback(options);
  });
  await Promise.all(urls.map((url) =>
    abortOn(url, rid, options).catch((cause: unknown) => {
      logger.debug("An abort did not reach a worker", { rid, url, cause: String(cause) });
    })
  ));
}

async function urlsOf(options: AbortOptions): Promise<readonly string[]> {
  if (options.url !== null) return [options.url];
  const { workers } = await options.workers.list(AbortSignal.timeout(SHORT_CALL_MS));
  return workers.length === 0 ? fallback(options) : workers.map(({ url }) => url);
}

/** Where no workers are listed: what is configured. */
function fallback({ workers: { place } }: AbortOptions): readonly string[] {
  return place.type === "router" ? [place.url] : place.urls;
}

async function abortOn(url: string, rid: string, { workers }: AbortOptions): Promise<void> {
  const response = await workers.fetch(`${url}/abort_request`, {
    method: "POST",
    headers: workers.headers(),
    body: JSON.stringify({ rid }),
    signal: AbortSignal.timeout(SHORT_CALL_MS),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`status ${response.status}`);
}
