/** A gateway in a process of its own, as `deno task serve` runs it, which a test may kill and start again on the same files. */

import { Environment } from "../../shared/schemas/environment.ts";

/** Where and with what it runs. */
export interface ServerProcessOptions {
  /** Variables of its environment; nothing of the test's own configures it. */
  readonly environment: Partial<Record<keyof Environment, string>>;
}

const LISTENING = /"message":"Verbatim is listening","url":"([^"]+)"/;
const START_TIMEOUT_MS = 60_000;

/** One life of a gateway process. */
export class ServerProcess implements AsyncDisposable {
  /** Resolves with its URL once it listens; rejects when it ends before. */
  readonly listening: Promise<string>;
  /** Lines it wrote that speak of an error. */
  readonly errors: string[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #ended: Promise<unknown>;

  constructor(options: ServerProcessOptions) {
    const unset = Object.fromEntries(Object.keys(Environment.shape).map((name) => [name, ""]));
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--frozen", "--allow-all", "functions/main.ts"],
      cwd: new URL("../../", import.meta.url),
      env: { ...unset, ...options.environment },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const url = Promise.withResolvers<string>();
    const timer = setTimeout(() => url.reject(new Error("The server did not say where it listens")), START_TIMEOUT_MS);
    this.listening = url.promise.finally(() => clearTimeout(timer));
    this.listening.catch(() => {});
    const lines: string[] = [];
    const reading = this.#read((line) => {
      lines.push(line);
      if (line.includes('"level":"error"')) this.errors.push(line);
      const found = LISTENING.exec(line);
      if (found !== null) url.resolve(found[1]!);
    });
    this.#ended = Promise.all([this.#child.status, reading]).then(() =>
      url.reject(new Error(`The server ended before it listened: ${lines.slice(-5).join("\n")}`))
    );
  }

  /** Ends it with this signal and waits until it is gone. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    try {
      this.#child.kill(signal);
    } catch (error) {
      // It has ended by itself.
      if (!(error instanceof TypeError) && !(error instanceof Deno.errors.NotFound)) throw error;
    }
    await this.#ended;
  }

  /** Kills it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }

  async #read(onLine: (line: string) => void): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      lines.forEach(onLine);
    }
    if (rest !== "") onLine(rest);
  }
}

/** A port that nothing listens on. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
