/** The real SGLang router in a process of a test's own, on free loopback ports. It knows nothing of gateways. */

import { freePort } from "../e2e/server_process.ts";
import { until } from "../e2e/until.ts";

/** The Python packages that are the router: SGLang's own, and its successor. */
export type RouterPackage = "sglang-router" | "smg";

/** What can run a router, or why nothing can. */
export type RouterProgram = RunnableRouter | { readonly missing: string };

/** A router that is installed. */
export interface RunnableRouter {
  readonly python: string;
  readonly package: RouterPackage;
  readonly version: string;
}

/** How a request finds its worker. */
export type RouterPolicy = "manual" | "consistent_hashing" | "cache_aware";

/** A worker as the router lists it. */
export interface ListedWorker {
  readonly id: string;
  readonly url: string;
  readonly healthy: boolean;
}

/** What may differ from the defaults below. */
export interface RouterOptions {
  readonly policy: RouterPolicy;
  /** Further flags of the router's launcher. */
  readonly flags?: readonly string[];
}

const FOLDER = new URL("./", import.meta.url).pathname;
const VENV = new URL("../../.cache/router-venv/", import.meta.url).pathname;
const START_TRIES = 4;

/** As the README has them, with health checks that a test can wait for. */
const FLAGS = [
  "--disable-retries",
  "--health-check-interval-secs=1",
  "--health-check-timeout-secs=1",
  "--health-failure-threshold=2",
  "--health-success-threshold=1",
  "--worker-startup-check-interval=1",
  "--log-level=warn",
];

/** Looks for a router: in the Python that `VERBATIM_TEST_ROUTER_PYTHON` names, else in this checkout's own environment. */
export function findRouter(name: RouterPackage): RouterProgram {
  const python = Deno.env.get("VERBATIM_TEST_ROUTER_PYTHON") || `${VENV}bin/python`;
  const args = ["-c", `from importlib.metadata import version; print(version("${name}"))`];
  try {
    const { success, stdout } = new Deno.Command(python, { args, stderr: "null" }).outputSync();
    if (success) return { python, package: name, version: new TextDecoder().decode(stdout).trim() };
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
  return { missing: `no ${name} in ${python}; tests/router/README.md tells how it is installed` };
}

/** One life of a router. */
export class RouterProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #log: Promise<string>;
  /** A request id that none but this router reads from this header. */
  readonly #mark: string;
  #ended = false;

  private constructor(readonly url: string, child: Deno.ChildProcess, mark: string) {
    this.#child = child;
    this.#mark = mark;
    this.#log = lastText(child.stdout);
    child.status.then(() => this.#ended = true);
  }

  /** Starts one without workers; resolves once it answers. */
  static async start(program: RunnableRouter, options: RouterOptions): Promise<RouterProcess> {
    for (let tries = 1;; tries++) {
      const port = freePort();
      const mark = `x-${crypto.randomUUID()}`;
      const child = new Deno.Command(program.python, {
        args: [
          `${FOLDER}launch_router.py`,
          program.package.replace("-", "_"),
          "--host=127.0.0.1",
          `--port=${port}`,
          "--prometheus-host=127.0.0.1",
          `--prometheus-port=${freePort()}`,
          `--request-id-headers=${mark}`,
          `--policy=${options.policy}`,
          ...FLAGS,
          ...options.flags ?? [],
        ],
        stdin: "piped",
        stdout: "piped",
        stderr: "null",
      }).spawn();
      const router = new RouterProcess(`http://127.0.0.1:${port}`, child, mark);
      await until("the router answers or has ended", async () => router.#ended || await router.#isAlive());
      if (!router.#ended) return router;
      // Another took a port since it was found free.
      await router.#end();
      if (tries === START_TRIES) throw new Error(`The router does not start: ${await router.#log}`);
    }
  }

  /** Registers a worker; resolves once the router holds it for healthy. */
  async add(workerUrl: string): Promise<void> {
    const response = await fetch(`${this.url}/workers`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ url: workerUrl }),
    });
    const text = await response.text();
    if (response.status !== 202) throw new Error(`The router does not take ${workerUrl}: ${response.status} ${text}`);
    await this.untilHealthy(workerUrl, true);
  }

  /** Takes a worker off; resolves once the router does not list it. */
  async remove(workerUrl: string): Promise<void> {
    const worker = (await this.workers()).find(({ url }) => url === workerUrl);
    if (worker === undefined) throw new Error(`The router has no worker ${workerUrl}`);
    const response = await fetch(`${this.url}/workers/${worker.id}`, { method: "DELETE" });
    const text = await response.text();
    if (response.status !== 202) throw new Error(`The router does not drop ${workerUrl}: ${response.status} ${text}`);
    await until(
      `the router has dropped ${workerUrl}`,
      async () => (await this.workers()).every(({ url }) => url !== workerUrl),
    );
  }

  /** What it lists. */
  async workers(): Promise<ListedWorker[]> {
    const listed: unknown = await (await fetch(`${this.url}/workers`)).json();
    return readWorkers(listed);
  }

  /** Waits until it holds a worker for healthy, or for ill. */
  async untilHealthy(workerUrl: string, healthy: boolean): Promise<void> {
    await until(
      `the router holds ${workerUrl} for ${healthy ? "healthy" : "ill"}`,
      async () => (await this.workers()).some((worker) => worker.url === workerUrl && worker.healthy === healthy),
    );
  }

  /** Ends it at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }

  async #end(): Promise<void> {
    await this.#child.stdin.close();
    await this.#child.status;
    await this.#log;
  }

  /** Whether it answers, it and no other on its port. */
  async #isAlive(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/liveness`, { headers: { [this.#mark]: this.#mark } });
      await response.body?.cancel();
      return response.ok && response.headers.get("x-request-id") === this.#mark;
    } catch {
      return false;
    }
  }
}

function readWorkers(listed: unknown): ListedWorker[] {
  const workers = isRecord(listed) && Array.isArray(listed.workers) ? listed.workers : [];
  return workers.map((worker) => {
    if (!isRecord(worker) || typeof worker.id !== "string" || typeof worker.url !== "string") {
      throw new Error(`The router lists a worker without id or url: ${JSON.stringify(worker)}`);
    }
    return { id: worker.id, url: worker.url, healthy: worker.is_healthy === true };
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The end of what a stream says, once it has ended. Reading it keeps its writer going. */
async function lastText(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const piece of stream.pipeThrough(new TextDecoderStream())) text = (text + piece).slice(-4_000);
  return text;
}
