/** Starts and stops the processes of a bench. It ends no process but its own. */

import { type ProcessUsage, readUsage } from "./process_usage.ts";

/** How a process is started and how it says where it listens. */
export interface BenchProcessOptions {
  /** Module, from the project's root. */
  readonly module: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Where the process says its URL. */
  readonly says: "stdout" | "stderr";
  /** The URL in a line it writes there; null where there is none. */
  readonly urlIn: (line: string) => string | null;
}

/** A process that listens. */
export interface BenchProcess extends AsyncDisposable {
  readonly url: string;
  /** When it was started, by `performance.now()`. */
  readonly startedAt: number;
  /** The last lines it wrote, the latest last. */
  readonly lastLines: readonly string[];
  /** What it used so far; null where the system does not tell. */
  usage(): ProcessUsage | null;
}

const START_TIMEOUT_MS = 60_000;
/** What a process that does not stop when asked has left to live. */
const STOP_GRACE_MS = 10_000;
const KEPT_LINES = 20;

/** Starts a process and waits until it listens. One that ends or stays silent is an error with its last lines. */
export async function startBenchProcess(options: BenchProcessOptions): Promise<BenchProcess> {
  const root = new URL("../../", import.meta.url);
  const startedAt = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--frozen", "--allow-all", options.module, ...options.args ?? []],
    cwd: root,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
  }).spawn();
  const url = Promise.withResolvers<string>();
  const last: string[] = [];
  function read(line: string, from: "stdout" | "stderr"): void {
    last.push(line);
    if (last.length > KEPT_LINES) last.shift();
    const found = from === options.says ? options.urlIn(line) : null;
    if (found !== null) url.resolve(found);
  }
  const reading = Promise.all([
    eachLine(child.stdout, (line) => read(line, "stdout")),
    eachLine(child.stderr, (line) => read(line, "stderr")),
  ]);
  const timer = setTimeout(() => url.reject(new Error("it did not say where it listens")), START_TIMEOUT_MS);
  const ended = child.status.then(async ({ code }) => {
    await reading;
    url.reject(new Error(`it ended with code ${code}`));
  });
  async function stop(): Promise<void> {
    const grace = setTimeout(() => signal(child, "SIGKILL"), STOP_GRACE_MS);
    signal(child, "SIGTERM");
    await ended;
    clearTimeout(grace);
  }
  try {
    return {
      url: await url.promise,
      startedAt,
      lastLines: last,
      usage: () => readUsage(child.pid),
      [Symbol.asyncDispose]: stop,
    };
  } catch (cause) {
    await stop();
    throw new Error(`${options.module} did not start:\n${last.join("\n")}`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

function signal(child: Deno.ChildProcess, name: Deno.Signal): void {
  try {
    child.kill(name);
  } catch (error) {
    // It has ended by itself.
    if (!(error instanceof TypeError) && !(error instanceof Deno.errors.NotFound)) throw error;
  }
}

async function eachLine(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onLine: (line: string) => void,
): Promise<void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(onLine);
  }
  if (rest !== "") onLine(rest);
}
