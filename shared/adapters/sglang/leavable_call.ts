/** An HTTP call that can be left while it goes on, so that its end can be waited for. It knows no SGLang. */

/**
 * Hanging up is not a way to end a request: some servers go on without a reader. So when `stop` aborts, whoever waits for
 * the answer is released at once, and the connection stays until the call has ended or is hung up.
 */
export class LeavableCall {
  readonly #hangUp = new AbortController();
  readonly #stop: AbortSignal;
  readonly #response: Promise<Response>;
  #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | null = null;
  #text: Promise<string> | null = null;

  /** Sends the request with a signal of its own. `stop` has not aborted yet. */
  constructor(send: (signal: AbortSignal) => Promise<Response>, stop: AbortSignal) {
    this.#stop = stop;
    this.#response = send(this.#hangUp.signal);
    this.#response.catch(() => {});
  }

  /** The answer's head. Rejects with the stop's reason when that comes first. */
  response(): Promise<Response> {
    return this.#orStop(this.#response);
  }

  /** The whole answer's body as text. */
  async text(): Promise<string> {
    const response = await this.response();
    this.#text ??= response.text();
    return await this.#orStop(this.#text);
  }

  /** The body as it comes. To leave it does not cancel it. */
  async *bytes(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const { body } = await this.response();
    if (body === null) return;
    const reader = this.#reader ??= body.getReader();
    for (;;) {
      const { done, value } = await this.#orStop(reader.read());
      if (done) return;
      yield value;
    }
  }

  /** Reads what is left and throws it away. Resolves when the call is over, however it ended. */
  async over(): Promise<void> {
    try {
      const response = await this.#response;
      if (this.#text !== null) {
        await this.#text;
        return;
      }
      const reader = this.#reader ??= response.body?.getReader() ?? null;
      while (reader !== null && !(await reader.read()).done);
    } catch {
      // It broke off: that is an end, too.
    }
  }

  /** Breaks the connection, if there still is one. */
  hangUp(): void {
    this.#hangUp.abort();
  }

  async #orStop<T>(work: Promise<T>): Promise<T> {
    const stop = this.#stop;
    const stopped = Promise.withResolvers<never>();
    const onStop = (): void => stopped.reject(stop.reason);
    if (stop.aborted) onStop();
    else stop.addEventListener("abort", onStop, { once: true });
    try {
      return await Promise.race([work, stopped.promise]);
    } finally {
      stop.removeEventListener("abort", onStop);
    }
  }
}
