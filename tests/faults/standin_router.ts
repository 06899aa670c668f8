/**
 * A stand-in for a router: it lists its workers, sends a routing key's requests to one of them and, while that one can't
 * be reached, to another; what it can't send is a 503. It starts in no time, on the port that it had, which the real ones
 * (tests/router) do not.
 */

import { sleepMs } from "./sleep_ms.ts";
import type { WorldRouter } from "./world_router.ts";

/** Requests for which a worker that was not reached is passed over. */
const PASSED_OVER = 8;

/** One router. */
export class StandinRouter implements WorldRouter {
  readonly url: string;
  readonly #workers: readonly string[];
  readonly #passedOver = new Map<string, number>();
  #server: Deno.HttpServer<Deno.NetAddr>;
  #stop = new AbortController();
  #restarting: Promise<void> = Promise.resolve();

  /** Starts it before these workers. */
  constructor(workers: readonly string[]) {
    this.#workers = workers;
    this.#server = this.#serve(0);
    this.url = `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Its connections break and nobody listens, for so long. */
  restart(downMs: number): Promise<void> {
    this.#restarting = this.#restarting.then(async () => {
      await this.close();
      await sleepMs(downMs);
      this.#stop = new AbortController();
      this.#server = this.#serve(this.#server.addr.port);
    });
    return this.#restarting;
  }

  /** Stops it. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#server.finished;
  }

  #serve(port: number): Deno.HttpServer<Deno.NetAddr> {
    const { signal } = this.#stop;
    const options = { hostname: "127.0.0.1", port, signal, onListen() {}, onError: () => refusal() };
    return Deno.serve(options, (request) => this.#answer(request));
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/workers") {
      return Response.json({ workers: this.#workers.map((url) => ({ id: url, url, is_healthy: true })) });
    }
    const worker = this.#workerOf(request.headers.get("x-smg-routing-key") ?? "");
    const body = request.method === "POST" ? await request.arrayBuffer() : null;
    try {
      const { method, headers, signal } = request;
      const answer = await fetch(worker + pathname, { method, headers, body, signal });
      return new Response(answer.body, { status: answer.status, headers: answer.headers });
    } catch {
      this.#passedOver.set(worker, PASSED_OVER);
      return refusal();
    }
  }

  #workerOf(key: string): string {
    const able: string[] = [];
    for (const worker of this.#workers) {
      const left = this.#passedOver.get(worker) ?? 0;
      if (left > 0) this.#passedOver.set(worker, left - 1);
      else able.push(worker);
    }
    const among = able.length > 0 ? able : this.#workers;
    const sum = Array.from(key).reduce((hash, char) => (Math.imul(hash, 31) + char.charCodeAt(0)) >>> 0, 7);
    return among[sum % among.length]!;
  }
}

function refusal(): Response {
  return new Response("Service Unavailable: no worker can be reached", { status: 503 });
}
