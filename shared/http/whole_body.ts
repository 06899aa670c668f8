/** A whole answer's body. A large one goes out in pieces: only then does a client that leaves in the middle show. */

/** Below it a body fits into the buffers between host and client, and nobody can tell how much of it arrived. */
const ONE_PIECE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;

/** A body with its length, for `Content-Length`. */
export interface WholeBody {
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly byteLength: number;
}

/** The text as a body. `onEnd` is called once: all of it was handed over (true), or the client went away before (false). */
export function wholeBody(text: string, onEnd: (whole: boolean) => void): WholeBody {
  const bytes = new TextEncoder().encode(text);
  const { byteLength } = bytes;
  if (byteLength <= ONE_PIECE_BYTES) {
    onEnd(true);
    return { body: bytes, byteLength };
  }
  let from = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(bytes.subarray(from, from += PIECE_BYTES));
      if (from < byteLength) return;
      controller.close();
      onEnd(true);
    },
    cancel() {
      onEnd(false);
    },
  }, { highWaterMark: 0 });
  return { body, byteLength };
}
