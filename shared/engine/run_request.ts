/** The life of one request from the queue to its end, with everything that may hold it up. It knows no wire. */

import { setImmediate } from "node:timers";
import type { EngineRequest } from "./engine_request.ts";
import { ABORTED, type FinishReason } from "./finish_reason.ts";
import type { Scheduler } from "./scheduler.ts";

/** Prompt ids read, or ids sampled, between two looks at the event loop. */
const PREFILL_STRIDE = 2048;
const DECODE_STRIDE = 128;

const IN_QUEUE: RequestEnd = { finish: { type: "abort", message: "Abort in waiting queue" }, inQueue: true };

/** How a request ended. */
export interface RequestEnd {
  readonly finish: FinishReason;
  /** Whether it ended in the queue; it never got, or no longer had, a slot. */
  readonly inQueue: boolean;
}

/** Runs a request to its end. Never rejects: a failure of the computation ends it as a scheduler's 500. */
export async function runRequest(request: EngineRequest, scheduler: Scheduler): Promise<RequestEnd> {
  const { generation } = request;
  try {
    if (request.faults.get("abort")?.by === "queue" || !await scheduler.enter(request)) return IN_QUEUE;
    let slot = true;
    try {
      await prefill(request, scheduler);
      const finish = await decode(request, scheduler, {
        hold(held) {
          slot = held;
        },
      });
      scheduler.cache.insert(generation.input.item.cacheKey, computedIds(request));
      return finish === null ? IN_QUEUE : { finish, inQueue: false };
    } finally {
      if (slot) scheduler.leave();
    }
  } catch (cause) {
    const message = String(cause);
    return { finish: { type: "abort", message, status_code: 500, err_type: "InternalServerError" }, inQueue: false };
  }
}

/** The last id was sampled, but nothing was computed from it: no cached prefix ends with it. */
function computedIds({ generation }: EngineRequest): Uint32Array {
  const { prompt } = generation.input;
  const output = generation.outputIds.slice(0, -1);
  const ids = new Uint32Array(prompt.length + output.length);
  ids.set(prompt);
  ids.set(output, prompt.length);
  return ids;
}

async function prefill(request: EngineRequest, scheduler: Scheduler): Promise<void> {
  const { prompt, item } = request.generation.input;
  // Positions from `logprob_start_len` on must be computed, and the last one always.
  const scored = item.returnLogprob && item.logprobStartLen >= 0 ? item.logprobStartLen : prompt.length;
  const reusable = Math.min(prompt.length - 1, scored);
  request.cachedTokens = Math.min(reusable, scheduler.cache.match(item.cacheKey, prompt));
  while (!request.generation.prefill(PREFILL_STRIDE)) await breathe();
  scheduler.cache.insert(item.cacheKey, prompt);
}

/** The end; null where the request was aborted after it had been put back into the queue. */
async function decode(
  request: EngineRequest,
  scheduler: Scheduler,
  { hold }: { hold: (slot: boolean) => void },
): Promise<FinishReason | null> {
  const { generation, faults } = request;
  const { maxNewTokens } = generation.input;
  const delay = faults.get("delay");
  const firstTokenMs = delay?.firstTokenMs ?? scheduler.options.firstTokenDelayMs;
  const tokenMs = delay?.tokenMs ?? scheduler.options.tokenDelayMs;
  for (let count = 0;; count++) {
    const early = await holdUp(request, scheduler, { ms: count === 0 ? firstTokenMs : tokenMs });
    if (early !== null) return early;
    if (count > 0 && count % DECODE_STRIDE === 0) await breathe();
    const frozen = scheduler.freeze(request);
    if (frozen?.mode === "in_place") await frozen.thawed;
    if (frozen?.mode === "retract") {
      request.retractions++;
      scheduler.leave();
      hold(false);
      if (!await scheduler.enter(request)) return null;
      hold(true);
    }
    if (request.abortReason !== null) return request.abortReason;
    if (maxNewTokens === 0) return { type: "length", length: 0 };
    const finish = generation.step();
    if (finish === null) {
      request.notify();
      continue;
    }
    if (faults.get("zombie") !== null && request.clientGone) await until(request.signal);
    request.ending = true;
    return request.abortReason ?? finish;
  }
}

/** Delays and the faults that act between two ids; an early end, or null. */
async function holdUp(
  request: EngineRequest,
  scheduler: Scheduler,
  { ms }: { ms: number },
): Promise<FinishReason | null> {
  const { faults, generation, signal } = request;
  const count = generation.outputIds.length;
  if (faults.all.length > 0) {
    const abort = faults.get("abort");
    if (abort !== null && count === (abort.afterTokens ?? 0)) {
      if (abort.by === "user") return ABORTED;
      if (abort.by === "scheduler") {
        return {
          type: "abort",
          message: abort.message ?? "The scheduler gave up.",
          status_code: abort.status ?? 503,
          err_type: null,
        };
      }
    }
    if (faults.get("die")?.afterTokens === count) {
      scheduler.options.die();
      await until(signal);
    }
    if (faults.get("hang")?.afterTokens === count || faults.get("zombie")?.afterTokens === count) await until(signal);
  }
  // An abort cuts the sleep short; the caller sees it on the request.
  if (ms > 0 && !signal.aborted) await scheduler.options.sleep(ms, signal).catch(() => {});
  return request.abortReason;
}

/** Lets other work of the process have its turn. A timer would cost milliseconds, an immediate costs microseconds. */
function breathe(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function until(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
