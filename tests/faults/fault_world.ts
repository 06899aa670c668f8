/** A run's world: workers, a router where there is one, a store, and a gateway before them, all of which can fail. */

import { readEnvironment } from "../../shared/adapters/read_environment.ts";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { type FaultPlan, WORKERS, type WorldFault } from "./fault_plan.ts";
import { FaultyWorker } from "./faulty_worker.ts";
import { GatewayLives } from "./gateway_lives.ts";
import { weightsOf } from "./judge.ts";
import type { Progress } from "./progress.ts";
import { RealRouter, routerOf } from "./real_router.ts";
import { sleepMs } from "./sleep_ms.ts";
import { StandinRouter } from "./standin_router.ts";
import type { StorePlace } from "./store_place.ts";
import type { WorldRouter } from "./world_router.ts";

/** What a world is made of. */
export interface FaultWorldOptions {
  readonly plan: FaultPlan;
  readonly place: StorePlace;
  readonly tokenizer: Tokenizer;
  /** What all workers are. */
  readonly engine: EmbeddedEngineOptions;
  readonly progress: Progress;
}

const CONTEXT_TOKENS = 32_768;
/** The trainer tells workers to go on until they do: by way of the gateway, then past it. */
const CONTINUE_TRIES = 400;
const CONTINUE_TRIES_BY_GATEWAY = 10;
const CONTINUE_GAP_MS = 50;

/** Everything that a run is about. */
export class FaultWorld implements AsyncDisposable {
  readonly workers: readonly FaultyWorker[];
  readonly lives: GatewayLives;
  readonly place: StorePlace;
  readonly #router: WorldRouter | null;

  private constructor(parts: Pick<FaultWorld, "workers" | "lives" | "place">, router: WorldRouter | null) {
    this.workers = parts.workers;
    this.lives = parts.lives;
    this.place = parts.place;
    this.#router = router;
  }

  /** Starts it, whole and well. */
  static async start({ plan, place, tokenizer, engine, progress }: FaultWorldOptions): Promise<FaultWorld> {
    const count = plan.topology === "worker" ? 1 : WORKERS;
    const workers = Array.from({ length: count }, (_, k) => {
      const options = {
        ...engine,
        maxRunningRequests: plan.workerSlots,
        random: seededRandom(plan.seed * 31 + k).unit,
      };
      return new FaultyWorker(options, () => progress.count("asked"));
    });
    const router = await startRouter(plan, workers.map(({ url }) => url));
    const environment = readEnvironment({
      ...(router === null
        ? { ROLLOUT_EXTERNAL_ENGINE_ADDRS: workers.map(({ url }) => url).join(",") }
        : { SGLANG_ROUTER_URL: router.url }),
      MODEL_NAME: engine.modelName,
      MAX_CONTEXT_LEN: String(CONTEXT_TOKENS),
      ENGINE_RETRY_S: "0.5",
      ENGINE_IDLE_TIMEOUT_S: "1",
      ENGINE_MAX_CONCURRENCY: String(plan.concurrency),
      LOG_LEVEL: "error",
    });
    const lives = await GatewayLives.start({ environment, tokenizer, place });
    return new FaultWorld({ workers, lives, place }, router);
  }

  /** Carries a fault out; resolves when it is over, or armed. */
  async suffer(fault: WorldFault): Promise<void> {
    switch (fault.kind) {
      case "worker_killed":
        return await this.#worker(fault).kill(fault.downMs);
      case "worker_faulty":
        return this.#worker(fault).faults.add({ when: { times: fault.times }, fault: fault.fault });
      case "request_aborted":
        return await this.#worker(fault).abortLate(fault.back);
      case "all_aborted":
        return await this.#worker(fault).steer("/abort_request", { abort_all: true });
      case "worker_paused": {
        const worker = this.#worker(fault);
        const pausing = worker.steer("/pause_generation", { mode: fault.mode });
        await sleepMs(fault.pausedMs);
        await worker.steer("/continue_generation", {});
        return await pausing;
      }
      case "weights_updated":
        return await this.#updateWeights(fault);
      case "router_restarted":
        return await this.#router!.restart(fault.downMs);
      case "gateway_restarted":
        return await this.lives.restart(fault.graceMs);
      case "gateway_killed":
        return await this.lives.kill(fault.downMs);
      case "store_failing":
      case "store_locked":
      case "store_cut":
        return await this.place.fail(fault);
    }
  }

  /** Ends every fault that would last. */
  async heal(): Promise<void> {
    this.place.heal();
    for (const worker of this.workers) worker.faults.clear();
    await this.#goOn();
  }

  /** What is under way, for messages. */
  toString(): string {
    const { inFlight, models } = this.lives.services;
    const { running, waiting, paused } = models.default.generations.gate;
    return JSON.stringify({
      calls: inFlight.total,
      gate: { running, waiting, paused },
      workers: this.workers.map(({ busy }) => busy),
    });
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.lives[Symbol.asyncDispose]();
    await this.#router?.close();
    await Promise.all(this.workers.map((worker) => worker.close()));
    await this.place[Symbol.asyncDispose]();
  }

  #worker({ worker }: { readonly worker: number }): FaultyWorker {
    return this.workers[worker]!;
  }

  async #updateWeights(fault: Extract<WorldFault, { kind: "weights_updated" }>): Promise<void> {
    const { mode, version, pausedMs } = fault;
    const pausing = this.#trainer({ action: "pause", mode });
    await sleepMs(pausedMs);
    await pausing;
    const update = { action: "update_from_disk", model_path: weightsOf(version), weight_version: version };
    await this.#trainer({ ...update, flush_cache: mode === "abort" });
    for (let tries = 1; !await this.#trainer({ action: "continue" }); tries++) {
      if (tries === CONTINUE_TRIES) throw new Error("No worker goes on");
      // A gateway that stops waits for calls that paused workers do not end.
      if (tries === CONTINUE_TRIES_BY_GATEWAY) await this.#goOn();
      await sleepMs(CONTINUE_GAP_MS);
    }
  }

  async #goOn(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.steer("/continue_generation", {})));
  }

  /** An action by way of the gateway, which may be down, as may workers. Whether all did it. */
  async #trainer(body: Record<string, unknown>): Promise<boolean> {
    try {
      const response = await fetch(`${this.lives.url}/engines/update`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: this.lives.connection,
      });
      await response.body?.cancel();
      return response.ok;
    } catch (thrown) {
      if (!(thrown instanceof TypeError)) throw thrown;
      return false;
    }
  }
}

/** Where no real router is installed, a stand-in takes its place (the test says so). */
async function startRouter({ seed, topology }: FaultPlan, workers: readonly string[]): Promise<WorldRouter | null> {
  if (topology === "worker" || topology === "workers") return null;
  const program = topology === "router" ? routerOf(seed) : null;
  if (program === null || "missing" in program) return new StandinRouter(workers);
  return await RealRouter.start(program, workers);
}
