/** Server-sent events whose source is never slowed by a slow client. It knows no dialect. */

import { VerbatimError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** What a stream needs beside its frames. */
export interface SseOptions {
  readonly clock: Clock;
  /** After how long a silence a keep-alive is sent, and at the latest when the headers leave. */
  readonly keepAliveMs: number;
  /** The frame sent into a silence. */
  readonly keepAlive: string;
  /** The frame that tells the client what failed. After it the connection is broken: a clean end would look like success. */
  errorFrame(error: unknown): string;
  readonly headers?: Record<string, string>;
  /** Called once: the last frame was handed over (true), or the client went away or the source failed (false). */
  onEnd?(whole: boolean): void;
  /** Called when the client went away. */
  onCancel?(): void;
}

const encoder = new TextEncoder();

/**
 * The response of these frames. Waits for the first frame before the headers leave, so that a failure before it is
 * thrown and keeps its status; but no longer than `keepAliveMs`.
 */
export async function sseResponse(frames: AsyncIterable<string>, options: SseOptions): Promise<Response> {
  const iterator = frames[Symbol.asyncIterator]();
  let pending: Promise<IteratorResult<string>> | null = iterator.next();
  let early: IteratorResult<string> | null = await within(pending, options);
  if (early !== null) pending = null;
  let ended = false;
  function end(whole: boolean): void {
    if (ended) return;
    ended = true;
    options.onEnd?.(whole);
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        let next = early;
        early = null;
        if (next === null) {
          pending ??= iterator.next();
          next = await within(pending, options);
          if (next === null) {
            controller.enqueue(encoder.encode(options.keepAlive));
            return;
          }
          pending = null;
        }
        if (next.done === true) {
          controller.close();
          end(true);
          return;
        }
        controller.enqueue(encoder.encode(next.value));
      } catch (thrown) {
        if (ended) return;
        controller.enqueue(encoder.encode(options.errorFrame(thrown)));
        end(false);
        // The frame must leave before the connection breaks: an error drops what is still queued.
        await options.clock.sleep(50);
        controller.error(thrown instanceof VerbatimError ? thrown : new Error("The stream failed"));
      }
    },
    async cancel() {
      end(false);
      options.onCancel?.();
      await iterator.return?.();
    },
  }, { highWaterMark: 0 });
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
      ...options.headers,
    },
  });
}

async function within<T>(work: Promise<T>, options: { clock: Clock; keepAliveMs: number }): Promise<T | null> {
  const timer = new AbortController();
  const silence = options.clock.sleep(options.keepAliveMs, timer.signal).then(() => null, () => null);
  try {
    return await Promise.race([work, silence]);
  } finally {
    timer.abort();
  }
}

/** One event of data alone. */
export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
