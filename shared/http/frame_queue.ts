/** Frames between a source and a slower reader: the source is read as fast as it comes, the reader takes what there is. */

/** Frames are joined for a reader that is behind, up to this length; then the host's own flow control has its say. */
const MOST_JOINED = 64 * 1024;

/**
 * Reads its source from the start, whether or not anyone takes the frames; it holds what is not taken yet, at most the
 * whole answer.
 */
export class FrameQueue {
  readonly #source: AsyncIterator<string>;
  #frames: string[] = [];
  /** Index of the first frame that was not taken; those before it are gone. */
  #next = 0;
  #state: "open" | "ended" | "failed" | "cancelled" = "open";
  #failure: unknown;
  #wake: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(source: AsyncIterable<string>) {
    this.#source = source[Symbol.asyncIterator]();
    void this.#read();
  }

  /** Resolves once there is something to take, or nothing will come any more. */
  async ready(): Promise<void> {
    while (this.#next === this.#frames.length && this.#state === "open") await this.#wake.promise;
  }

  /**
   * The frames that wait, joined, some 64 Ki characters at most; null when none wait and none will come. Throws what the
   * source threw, after its frames.
   */
  take(): string | null {
    if (this.#next === this.#frames.length) {
      if (this.#state === "failed") throw this.#failure;
      return this.#state === "open" ? "" : null;
    }
    let text = "";
    while (this.#next < this.#frames.length && text.length < MOST_JOINED) {
      text += this.#frames[this.#next];
      this.#frames[this.#next++] = "";
    }
    if (this.#next === this.#frames.length) this.#forget();
    return text;
  }

  /** Gives the source up. Nothing more is to be taken. */
  cancel(): void {
    this.#forget();
    this.#end("cancelled");
    // A source that is waiting hears of it when its wait ends; how it takes it is of no interest any more.
    Promise.resolve(this.#source.return?.()).catch(() => {});
  }

  async #read(): Promise<void> {
    try {
      for (let next = await this.#source.next(); this.#state === "open"; next = await this.#source.next()) {
        if (next.done === true) return this.#end("ended");
        if (next.value === "") continue;
        this.#frames.push(next.value);
        this.#signal();
      }
    } catch (thrown) {
      this.#failure = thrown;
      this.#end("failed");
    }
  }

  #forget(): void {
    this.#frames = [];
    this.#next = 0;
  }

  #end(state: "ended" | "failed" | "cancelled"): void {
    if (this.#state === "open") this.#state = state;
    this.#signal();
  }

  #signal(): void {
    const wake = this.#wake;
    this.#wake = Promise.withResolvers();
    wake.resolve();
  }
}
