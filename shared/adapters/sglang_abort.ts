/** Tells SGLang workers to abort a request, through a router or directly. It does not wait for the request's end. */

import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { isObject } from "./sglang_failure.ts";

/** What aborting needs. */
export interface AbortOptions {
  /** A router, or a single worker. */
  readonly url: string;
  readonly headers: Headers;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fetch: typeof fetch;
}

/** An abort is fire-and-forget on the engine's side and may miss a request between queue and batch; it is repeated. */
const ABORT_TRIES = 3;
const ABORT_GAP_MS = 250;
const SHORT_CALL_MS = 5000;

/** Aborts every request whose id begins with `rid`, on every worker. Never throws; a worker that is not reached is logged. */
export async function abortOnWorkers(rid: string, options: AbortOptions): Promise<void> {
  const { clock, logger } = options;
  for (let tries = 0; tries < ABORT_TRIES; tries++) {
    if (tries > 0) await clock.sleep(ABORT_GAP_MS);
    const urls = await workerUrls(options).catch((cause: unknown) => {
      logger.debug("The workers to abort on can't be listed", { rid, cause: String(cause) });
      return [options.url];
    });
    await Promise.all(urls.map((url) =>
      abortOn(url, rid, options).catch((cause: unknown) => {
        logger.debug("An abort did not reach a worker", { rid, url, cause: String(cause) });
      })
    ));
  }
}

/** A router answers no abort itself: it lists its workers. A worker has no such list and is its own. */
async function workerUrls(options: AbortOptions): Promise<string[]> {
  const response = await shortCall(`${options.url}/workers`, { headers: options.headers }, options);
  const text = await response.text();
  if (!response.ok) return [options.url];
  const listed: unknown = JSON.parse(text);
  const workers = isObject(listed) && Array.isArray(listed.workers) ? listed.workers : [];
  const urls = workers.flatMap((worker) => isObject(worker) && typeof worker.url === "string" ? [worker.url] : []);
  return urls.length > 0 ? urls.map((url) => url.replace(/\/+$/, "")) : [options.url];
}

async function abortOn(url: string, rid: string, options: AbortOptions): Promise<void> {
  const init = { method: "POST", headers: options.headers, body: JSON.stringify({ rid }) };
  const response = await shortCall(`${url}/abort_request`, init, options);
  await response.body?.cancel();
  if (!response.ok) throw new Error(`status ${response.status}`);
}

/** A call that is given up after a while. */
async function shortCall(url: string, init: RequestInit, options: AbortOptions): Promise<Response> {
  return await options.fetch(url, { ...init, signal: AbortSignal.timeout(SHORT_CALL_MS) });
}
