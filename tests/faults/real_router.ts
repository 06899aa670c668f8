/** A real router (tests/router) behind a port that stays, so that it can be started anew. */

import { startTcpProxy, type TcpProxy } from "../fixtures/tcp_proxy.ts";
import { findRouter, RouterProcess, type RouterProgram, type RunnableRouter } from "../router/router_process.ts";
import { sleepMs } from "./sleep_ms.ts";
import type { WorldRouter } from "./world_router.ts";

/** The router of a seed: SGLang's own, or its successor. */
export function routerOf(seed: number): RouterProgram {
  return findRouter(seed % 2 === 0 ? "sglang-router" : "smg");
}

/** One, over its lives. */
export class RealRouter implements WorldRouter {
  readonly url: string;
  readonly #program: RunnableRouter;
  readonly #workers: readonly string[];
  readonly #proxy: TcpProxy;
  #process: RouterProcess;
  #restarting: Promise<void> = Promise.resolve();

  private constructor(program: RunnableRouter, workers: readonly string[], first: RouterProcess) {
    this.#program = program;
    this.#workers = workers;
    this.#process = first;
    this.#proxy = startTcpProxy(() => Number(new URL(this.#process.url).port));
    this.url = `http://127.0.0.1:${this.#proxy.port}`;
  }

  /** Starts it before these workers, which it holds for healthy. */
  static async start(program: RunnableRouter, workers: readonly string[]): Promise<RealRouter> {
    return new RealRouter(program, workers, await startProcess(program, workers));
  }

  restart(downMs: number): Promise<void> {
    this.#restarting = this.#restarting.then(async () => {
      await this.#process[Symbol.asyncDispose]();
      await sleepMs(downMs);
      this.#process = await startProcess(this.#program, this.#workers);
    });
    return this.#restarting;
  }

  async close(): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    await this.#proxy[Symbol.asyncDispose]();
  }
}

async function startProcess(program: RunnableRouter, workers: readonly string[]): Promise<RouterProcess> {
  const router = await RouterProcess.start(program, { policy: "manual", flags: ["--assignment-mode=min_group"] });
  await Promise.all(workers.map((worker) => router.add(worker)));
  return router;
}
