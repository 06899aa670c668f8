/** Server-sent events as SGLang writes them. It does not know what is in a frame. */

import { bodyText } from "./response_body.ts";

/** The frame that ends a stream. */
export const DONE_FRAME = "data: [DONE]\n\n";

/** One frame. */
export function sseFrame(body: unknown): string {
  return `data: ${bodyText(body)}\n\n`;
}

/**
 * A stream of the frames that `frames` yields, made one at a time as they are read. What `frames` throws breaks the
 * connection. `onCancel` is called when the reader leaves before the end.
 */
export function sseStream(frames: AsyncGenerator<string>, onCancel: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await frames.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel() {
      onCancel();
    },
  }, { highWaterMark: 0 });
}
