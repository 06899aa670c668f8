/** A process of a topology: it is up once its port answers, and gone when it is ended. It does not know what runs in it. */

import { until } from "../e2e/until.ts";

/** What is run. */
export interface ProcessOptions {
  readonly words: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** Where it will answer. */
  readonly port: number;
}

const ROOT = new URL("../../", import.meta.url);
const LOG_CHARACTERS = 4000;

/** One life of a process. */
export class StartedProcess implements AsyncDisposable {
  readonly url: string;
  readonly #options: ProcessOptions;
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<unknown>;
  #ending: Promise<void> | null = null;
  #ended = false;
  #log = "";

  /** Starts it. */
  constructor(options: ProcessOptions) {
    const [program, ...args] = options.words;
    this.#options = options;
    this.url = `http://127.0.0.1:${options.port}`;
    this.#child = new Deno.Command(program, {
      args,
      cwd: ROOT,
      env: { ...options.environment },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#reading = Promise.all([this.#read(this.#child.stdout), this.#read(this.#child.stderr)]);
    this.#child.status.then(() => this.#ended = true);
  }

  /** The end of what it wrote. */
  get log(): string {
    return this.#log;
  }

  /** Resolves once it answers; rejects when it has ended before. */
  async answers(): Promise<void> {
    await until(`${this.#options.words.join(" ")} answers`, async () => this.#ended || await this.#isUp());
    if (this.#ended) throw new Error(`${this.#options.words.join(" ")} ended before it answered:\n${this.#log}`);
  }

  /** Ends it as a crash would, and waits until it is gone. */
  end(): Promise<void> {
    return this.#ending ??= this.#end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  async #end(): Promise<void> {
    if (!this.#ended) this.#child.kill("SIGKILL");
    await this.#child.stdin.close().catch(() => {});
    await this.#child.status;
    await this.#reading;
  }

  async #isUp(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/health`);
      await response.body?.cancel();
      return true;
    } catch {
      return false;
    }
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      this.#log = (this.#log + text).slice(-LOG_CHARACTERS);
    }
  }
}
