/** Server-sent events as a client sees them: frame by frame, with how the stream ended. */

import type { Body } from "./harness.ts";

/** One streamed answer. */
export class EventStream {
  /** Of the answer. */
  readonly status: number;
  /** Of the answer. */
  readonly headers: Headers;
  /** Comments (keep-alives) seen so far. */
  comments = 0;
  /** How it ended: with `[DONE]`, with the end of the body alone, or with a broken connection; null while it goes on. */
  end: "done" | "closed" | "broken" | null = null;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #rest = "";
  #events: string[] = [];

  private constructor(response: Response) {
    this.status = response.status;
    this.headers = response.headers;
    this.#reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
  }

  /** Sends the request; resolves with the headers of the answer. */
  static async open(
    url: string,
    request: { readonly headers: Record<string, string>; readonly body: string },
  ): Promise<EventStream> {
    return new EventStream(await fetch(url, { method: "POST", ...request }));
  }

  /** The next frame's JSON; null once the stream has ended, however it did. */
  async next(): Promise<Body | null> {
    for (;;) {
      const event = this.#events.shift();
      if (event === undefined) {
        if (this.end !== null || !await this.#read()) return null;
        continue;
      }
      if (event.startsWith(":")) {
        this.comments++;
        continue;
      }
      const data = event.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join(
        "\n",
      );
      if (data !== "[DONE]") return JSON.parse(data);
      this.end = "done";
    }
  }

  /** Every frame that is left. */
  async rest(): Promise<Body[]> {
    const frames: Body[] = [];
    for (let frame = await this.next(); frame !== null; frame = await this.next()) frames.push(frame);
    // What comes after [DONE] must be nothing but the end.
    while (this.end === "done" && await this.#read()) { /* read to the end, so that the connection is free */ }
    return frames;
  }

  /** Waits until a keep-alive was seen before any further frame. */
  async comment(): Promise<void> {
    const seen = this.comments;
    while (this.comments === seen) {
      if (this.#events[0]?.startsWith(":")) {
        this.#events.shift();
        this.comments++;
      } else if (this.#events.length > 0 || !await this.#read()) {
        throw new Error("A frame or the end came where a keep-alive was due");
      }
    }
  }

  /** Closes the connection, as a client that is gone does. */
  hangUp(): void {
    this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<boolean> {
    try {
      const part = await this.#reader.read();
      if (part.done) {
        this.#decoder.decode();
        this.end ??= "closed";
        return false;
      }
      const events = (this.#rest + this.#decoder.decode(part.value, { stream: true })).split("\n\n");
      this.#rest = events.pop() ?? "";
      this.#events.push(...events);
      return true;
    } catch {
      this.end ??= "broken";
      return false;
    }
  }
}
