/** Answers of one JSON text a line (NDJSON), each sent when it is there. */

/**
 * An answer of these values. What the source throws becomes a last line by `errorLine`. A client that leaves ends the
 * source; the source's own signal has to end what it waits for.
 */
export function linesResponse(values: AsyncIterable<unknown>, errorLine: (thrown: unknown) => unknown): Response {
  const iterator = values[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  const line = (value: unknown) => encoder.encode(`${JSON.stringify(value)}\n`);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await iterator.next();
        if (next.done === true) controller.close();
        else controller.enqueue(line(next.value));
      } catch (thrown) {
        controller.enqueue(line(errorLine(thrown)));
        controller.close();
      }
    },
    cancel() {
      // A source that is waiting hears of it by its signal; how it takes it is of no interest any more.
      Promise.resolve(iterator.return?.()).catch(() => {});
    },
  });
  return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
}
