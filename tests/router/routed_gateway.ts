/** A gateway before a real router before three embedded workers, and what each worker was asked. */

import { Hono } from "hono";
import { serveGateway } from "../../functions/serve_gateway.ts";
import { readEnvironment } from "../../shared/adapters/read_environment.ts";
import { createSglangEngine } from "../../shared/adapters/sglang/sglang_engine.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";
import { composeDeno } from "../../shared/compose_deno.ts";
import { SAY_SCRIPT } from "../../shared/engine/demo_scripts.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import type { EmbeddedEngineOptions } from "../../shared/engine/engine_options.ts";
import { type ServedEngine, serveEmbeddedEngine } from "../../shared/engine/serve_embedded_engine.ts";
import type { Engine } from "../../shared/ports/engine.ts";
import type { Environment } from "../../shared/schemas/environment.ts";
import { type Body, type GatewayClient, gatewayClient } from "../e2e/gateway_client.ts";
import { until } from "../e2e/until.ts";
import { createListLogger } from "../fixtures/list_logger.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { type RouterOptions, RouterProcess, type RunnableRouter } from "./router_process.ts";

/** A worker behind the router. */
export interface RoutedWorker {
  readonly url: string;
  readonly engine: EmbeddedEngine;
  readonly served: ServedEngine;
  /** Bodies of `/generate`, in the order they came. */
  readonly asked: Body[];
  /** Health checks so far, answered or not. */
  readonly checks: () => number;
}

/** What may differ. */
export interface RoutedGatewayOptions extends RouterOptions {
  readonly environment?: Partial<Record<keyof Environment, string>>;
  readonly engine?: Partial<EmbeddedEngineOptions>;
}

/** All of it, running. */
export interface RoutedGateway extends GatewayClient, AsyncDisposable {
  readonly router: RouterProcess;
  readonly workers: readonly RoutedWorker[];
  /** A worker without the router, to find logprobs again: all workers have one distribution. */
  readonly engine: Engine;
  /** Waits until no worker runs anything and nothing is queued. */
  workersIdle(): Promise<void>;
  /** Waits until the workers together run so many requests. */
  workersRun(count: number): Promise<void>;
  /** The worker that was given exactly this prompt; fails where several were, or none. */
  workerOf(promptIds: readonly number[]): RoutedWorker;
}

const MODEL_NAME = "routed";
const WORKERS = 3;

/** Starts workers, router and gateway; the workers are registered and healthy. */
export async function startRoutedGateway(
  program: RunnableRouter,
  options: RoutedGatewayOptions,
): Promise<RoutedGateway> {
  await using started = new AsyncDisposableStack();
  const tokenizer = await qwen3Tokenizer();
  const workers = Array.from({ length: WORKERS }, (): RoutedWorker => {
    const asked: Body[] = [];
    let checks = 0;
    const engine = createEmbeddedEngine({
      tokenizer,
      modelName: MODEL_NAME,
      maxContextTokens: 131072,
      incremental: true,
      script: SAY_SCRIPT,
      ...options.engine,
    });
    const served = serveEmbeddedEngine({ app: recording(engine.app, asked, () => checks++), death: engine.death });
    started.defer(() => served.close());
    return { url: served.url, engine, served, asked, checks: () => checks };
  });
  const router = started.use(await RouterProcess.start(program, options));
  await Promise.all(workers.map(({ url }) => router.add(url)));
  const logger = createListLogger();
  const composition = await composeDeno(
    readEnvironment({
      KV_PATH: ":memory:",
      LOG_LEVEL: "error",
      ...options.environment,
      SGLANG_ROUTER_URL: router.url,
    }),
    { tokenizer, logger },
  );
  started.defer(() => composition.close());
  const gateway = serveGateway(composition.services, { hostname: "127.0.0.1", port: 0 });
  started.defer(() => gateway.close());
  const running = (): number => workers.reduce((sum, { engine }) => sum + engine.running + engine.queued, 0);
  const everything = started.move();
  return {
    ...gatewayClient(gateway.url),
    router,
    workers,
    engine: createSglangEngine({
      url: workers[0]!.url,
      vocabSize: tokenizer.vocabSize,
      retryMs: 0,
      idleTimeoutMs: 60_000,
      clock: systemClock,
      logger,
      background: createTrackedBackground(logger),
      random: () => 0.5,
    }),
    workersIdle: () => until("the workers are idle", () => running() === 0),
    workersRun: (count) => until(`the workers run ${count}`, () => running() === count),
    workerOf(promptIds) {
      const text = JSON.stringify(promptIds);
      const given = workers.filter(({ asked }) => asked.some(({ input_ids }) => JSON.stringify(input_ids) === text));
      if (given.length !== 1) {
        throw new Error(`A prompt of ${promptIds.length} tokens was given to ${given.length} workers`);
      }
      return given[0]!;
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** The worker's routes; what `/generate` is sent is noted, and health checks are counted. */
function recording(app: Hono, asked: Body[], onCheck: () => void): Hono {
  return new Hono().use("/generate", async (context, next) => {
    asked.push(await context.req.raw.clone().json());
    await next();
  }).use("/health", async (_context, next) => {
    onCheck();
    await next();
  }).mount("/", app.fetch);
}
