/** Bodies that are made while they are sent: nothing is held of them but the piece that is next. */

/** A body of these parts, each made when the client is ready for it. */
export function partsBody(parts: Iterable<string | Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.iterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
        const bytes = typeof next.value === "string" ? encoder.encode(next.value) : next.value;
        // A stream waits for bytes, and an empty part brings none.
        if (bytes.byteLength === 0) continue;
        controller.enqueue(bytes);
        return;
      }
      controller.close();
    },
    cancel() {
      iterator.return?.();
    },
  }, { highWaterMark: 0 });
}

/** The format that `Accept` names for arrays. */
const SAFETENSORS = "application/x-safetensors";

/** Whether the caller wants arrays as tensors. */
export function wantsTensors(accept: string | undefined): boolean {
  return (accept ?? "").split(",").some((entry) => entry.split(";")[0]!.trim().toLowerCase() === SAFETENSORS);
}

/** An answer in the safetensors format. */
export function tensorsResponse(
  file: { readonly parts: readonly Uint8Array[]; readonly byteLength: number },
): Response {
  return new Response(partsBody(file.parts), {
    headers: { "content-type": SAFETENSORS, "content-length": String(file.byteLength) },
  });
}
