/** A gateway that is stopped, or killed, and started again on its port over what its store has kept. */

import { type ServedGateway, serveGateway } from "../../functions/serve_gateway.ts";
import { createPrometheusMetrics } from "../../shared/adapters/prometheus_metrics.ts";
import { createRandomIds } from "../../shared/adapters/random_ids.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import { composeModel } from "../../shared/compose_model.ts";
import { type ComposedServices, composeServices, endWork } from "../../shared/compose_services.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import type { Tokenizer } from "../../shared/ports/tokenizer.ts";
import type { Environment } from "../../shared/schemas/environment.ts";
import { createListLogger, type ListLogger } from "../fixtures/list_logger.ts";
import { sleepMs } from "./sleep_ms.ts";
import { eachCall, type StorePlace } from "./store_place.ts";

/** What a client makes of it. */
const GONE = new TypeError("The gateway is gone");

/** What every life is made with. */
export interface GatewayLivesOptions {
  readonly environment: Environment;
  readonly tokenizer: Tokenizer;
  readonly place: StorePlace;
}

/** One process, as it were. */
interface Life {
  readonly services: ComposedServices;
  readonly gateway: ServedGateway;
  /** Its end; a host's server leaves some connections open when it stops, which a process that is gone does not. */
  readonly gone: AbortController;
  readonly store: TaskStore;
  /** From now on no call of the store comes back, nor is one begun. */
  sever(): void;
}

/** The lives of one gateway. */
export class GatewayLives implements AsyncDisposable {
  readonly #options: GatewayLivesOptions;
  readonly #logger: ListLogger;
  /** Stores of lives that were killed. */
  readonly #left: TaskStore[] = [];
  #life: Life;
  /** Lives begin and end one after the other. */
  #changing: Promise<void> = Promise.resolve();
  readonly url: string;

  private constructor(options: GatewayLivesOptions, logger: ListLogger, first: Life) {
    this.#options = options;
    this.#logger = logger;
    this.#life = first;
    this.url = first.gateway.url;
  }

  /** Starts the first. */
  static async start(options: GatewayLivesOptions): Promise<GatewayLives> {
    const logger = createListLogger();
    return new GatewayLives(options, logger, await startLife(options, logger, 0));
  }

  /** Services of the life that is. */
  get services(): ComposedServices {
    return this.#life.services;
  }

  /** Aborts when the life that is has ended, with what a client makes of that. */
  get connection(): AbortSignal {
    return this.#life.gone.signal;
  }

  /** Lines that speak of an error, of all lives. */
  get errors(): ListLogger["lines"] {
    return this.#logger.lines.filter(({ level }) => level === "error");
  }

  /** Stops as at SIGTERM, with so much time for the answers under way, and starts anew. */
  restart(graceMs: number): Promise<void> {
    return this.#change(async ({ gateway, services, store, gone }) => {
      await gateway.close(graceMs);
      gone.abort(GONE);
      await endWork(services);
      await store.close();
    });
  }

  /** Ends as at SIGKILL, as far as anybody outside can tell, and starts anew after a while. */
  kill(downMs: number): Promise<void> {
    return this.#change(async ({ gateway, store, sever, gone }) => {
      sever();
      this.#left.push(store);
      await gateway.close();
      gone.abort(GONE);
      await sleepMs(downMs);
    });
  }

  /** Resolves when the life that is has nothing to do in the background. */
  async idle(): Promise<void> {
    await this.#changing;
    await this.services.background.idle();
  }

  /** Ends the last. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#changing;
    const { gateway, services, store } = this.#life;
    await gateway.close();
    await endWork(services);
    for (const each of [store, ...this.#left]) await each.close();
  }

  #change(end: (life: Life) => Promise<void>): Promise<void> {
    this.#changing = this.#changing.then(async () => {
      await end(this.#life);
      this.#life = await startLife(this.#options, this.#logger, Number(new URL(this.url).port));
    });
    return this.#changing;
  }
}

async function startLife(options: GatewayLivesOptions, logger: ListLogger, port: number): Promise<Life> {
  const { environment, tokenizer, place } = options;
  const store = await place.open();
  let severed = false;
  const never = () => new Promise<never>(() => {});
  const severable = eachCall(store, async (_name, call) => {
    if (severed) return await never();
    const result = await call().then((value) => () => value, (thrown) => () => {
      throw thrown;
    });
    return severed ? await never() : result();
  });
  const ids = createRandomIds(systemClock);
  const background = createTrackedBackground(logger);
  const model = await composeModel(environment, {
    tokenizer,
    files: null,
    clock: systemClock,
    ids,
    logger,
    background,
  });
  const services = composeServices({
    store: severable,
    models: [model],
    clock: systemClock,
    ids,
    logger,
    background,
    createMetrics: createPrometheusMetrics,
  }, environment);
  const gateway = serveGateway(services, { hostname: "127.0.0.1", port });
  return {
    services,
    gateway,
    gone: new AbortController(),
    store,
    sever() {
      severed = true;
    },
  };
}
