/** Server-sent events whose source is never slowed by a slow client. It knows no dialect. */

import { VerbatimError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { FrameQueue } from "./frame_queue.ts";

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
  /** Called once for a response that was made: the last frame was handed over (true), or the client went away or the source failed (false). */
  onEnd?(whole: boolean): void;
  /** Called when the client went away. */
  onCancel?(): void;
}

/** How long the error frame has to leave: breaking the connection drops what the host has not sent yet. */
const BREAK_AFTER_MS = 50;

/** Ends a wait for silence; made once, since an abort without a reason makes an error each time. */
const HEARD = new Error("There is something to send");

const encoder = new TextEncoder();

/**
 * The response of these frames. Waits for the first frame before the headers leave, so that a failure before it is
 * thrown and keeps its status; but no longer than `keepAliveMs`.
 */
export async function sseResponse(frames: AsyncIterable<string>, options: SseOptions): Promise<Response> {
  const queue = new FrameQueue(frames);
  const gone = new AbortController();
  let pending = await within(queue.ready(), options) ? queue.take() : "";
  let ended = false;
  function end(whole: boolean): void {
    if (ended) return;
    ended = true;
    options.onEnd?.(whole);
  }
  /** What to send next: frames, a keep-alive, or null at the end. */
  async function next(): Promise<string | null> {
    if (pending === "") {
      if (!await within(queue.ready(), options)) return options.keepAlive;
      pending = queue.take();
    }
    const text = pending;
    pending = "";
    return text;
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const text = await next();
        if (gone.signal.aborted) return;
        if (text !== null) return controller.enqueue(encoder.encode(text));
        controller.close();
        end(true);
      } catch (thrown) {
        if (gone.signal.aborted) return;
        controller.enqueue(encoder.encode(options.errorFrame(thrown)));
        end(false);
        await options.clock.sleep(BREAK_AFTER_MS, gone.signal).catch(() => {});
        controller.error(thrown instanceof VerbatimError ? thrown : new Error("The stream failed"));
      }
    },
    cancel() {
      gone.abort();
      queue.cancel();
      end(false);
      options.onCancel?.();
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

/** Whether the work ended within the longest silence. */
async function within(work: Promise<void>, options: { clock: Clock; keepAliveMs: number }): Promise<boolean> {
  const timer = new AbortController();
  const silence = options.clock.sleep(options.keepAliveMs, timer.signal).then(() => false, () => false);
  try {
    return await Promise.race([work.then(() => true), silence]);
  } finally {
    timer.abort(HEARD);
  }
}

/** One event of data alone. */
export function dataFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
