/** An embedded worker on a port of its own, which can die and come back, and what it was asked of late. It does not know why. */

import { Hono } from "hono";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import { type ServedEngine, serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import { sleepMs } from "./sleep_ms.ts";

/** Ids of requests that are remembered. */
const REMEMBERED = 8;
const LISTEN_TRIES = 200;
const LISTEN_GAP_MS = 25;

/** One worker. */
export class FaultyWorker {
  readonly url: string;
  readonly #options: EmbeddedEngineOptions;
  readonly #onAsked: () => void;
  readonly #latest: string[] = [];
  #engine: EmbeddedEngine;
  #served: ServedEngine;
  /** It dies of one thing after the other. */
  #dying: Promise<void> = Promise.resolve();

  /** Starts it. `onAsked` is told of every generation that comes. */
  constructor(options: EmbeddedEngineOptions, onAsked: () => void) {
    this.#options = options;
    this.#onAsked = onAsked;
    this.#engine = createEmbeddedEngine(options);
    this.#served = this.#serve(0);
    this.url = this.#served.url;
  }

  /** What runs or waits in the process that listens now. */
  get busy(): number {
    return this.#engine.running + this.#engine.queued;
  }

  /** What is to go wrong in the process that listens now. */
  get faults(): EmbeddedEngine["faults"] {
    return this.#engine.faults;
  }

  /** Dies; after so long another process listens on the port. */
  kill(downMs: number): Promise<void> {
    this.#dying = this.#dying.then(() => this.#die(downMs));
    return this.#dying;
  }

  /** Aborts the request that came so many requests ago. */
  async abortLate(back: number): Promise<void> {
    const rid = this.#latest.at(-1 - back);
    if (rid !== undefined) await this.steer("/abort_request", { rid });
  }

  /** A call past the gateway. That nobody listens is not this call's matter. */
  async steer(path: string, body: Record<string, unknown>): Promise<void> {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    await this.#engine.app.request(path, init);
  }

  /** Stops for good. */
  async close(): Promise<void> {
    await this.#served.close();
  }

  async #die(downMs: number): Promise<void> {
    await this.#served.close();
    await sleepMs(downMs);
    this.#engine = createEmbeddedEngine(this.#options);
    const port = Number(new URL(this.url).port);
    for (let tries = 1;; tries++) {
      try {
        this.#served = this.#serve(port);
        return;
      } catch (thrown) {
        // Another took the port since; it was given one of many.
        if (!(thrown instanceof Deno.errors.AddrInUse) || tries === LISTEN_TRIES) throw thrown;
        await sleepMs(LISTEN_GAP_MS);
      }
    }
  }

  #serve(port: number): ServedEngine {
    const app = new Hono().use("/generate", async (context, next) => {
      // A client may be gone before its body is here.
      const body = await context.req.json().catch(() => null);
      if (body !== null) this.#latest.push(body.rid);
      if (this.#latest.length > REMEMBERED) this.#latest.shift();
      this.#onAsked();
      await next();
    }).route("/", this.#engine.app);
    return serveEmbeddedEngine({ app, death: this.#engine.death }, { port });
  }
}
