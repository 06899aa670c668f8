/** The composition for Deno itself: on one machine, self-hosted, or on Deno Deploy. State in Deno KV. */

import { createHfTokenizer } from "./adapters/hf_tokenizer.ts";
import { createJsonLogger } from "./adapters/json_logger.ts";
import { createMemoryStore } from "./adapters/memory_store.ts";
import { createPrometheusMetrics } from "./adapters/prometheus_metrics.ts";
import { createRandomIds } from "./adapters/random_ids.ts";
import { createSglangEngine } from "./adapters/sglang_engine.ts";
import { createTrackedBackground } from "./adapters/tracked_background.ts";
import { loadTokenizerFiles } from "./adapters/load_tokenizer_files.ts";
import { openDenoKvStore } from "./adapters/deno_kv_store.ts";
import { systemClock } from "./adapters/system_clock.ts";
import { type ComposedServices, composeServices } from "./compose_services.ts";
import { VerbatimError } from "./core/errors.ts";
import type { Clock } from "./ports/clock.ts";
import type { Engine } from "./ports/engine.ts";
import type { Logger } from "./ports/logger.ts";
import type { TaskStore } from "./ports/task_store.ts";
import type { Tokenizer } from "./ports/tokenizer.ts";
import { createCompletionParser } from "./rendering/create_completion_parser.ts";
import { createRenderer } from "./rendering/create_renderer.ts";
import type { Environment } from "./schemas/environment.ts";
import type { Model } from "./services/model_catalog.ts";

/** A running composition. */
export interface Composition {
  readonly services: ComposedServices;
  /** Ends background work, writes what is pending, releases store and workers. */
  close(): Promise<void>;
}

/** Parts that are made already (development and tests). */
export interface ComposeDenoParts {
  readonly tokenizer?: Tokenizer;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

/** Expired tasks of stores without expiry of their own, and removals that were cut short, are looked for this often. */
const SWEEP_MS = 3_600_000;
const STARTUP_CALL_MS = 10_000;

/** Reads, connects and checks everything; what is missing or broken stops the start with the variable to set. */
export async function composeDeno(environment: Environment, parts: ComposeDenoParts = {}): Promise<Composition> {
  const clock = parts.clock ?? systemClock;
  const ids = createRandomIds(clock);
  const logger = parts.logger ?? createJsonLogger({
    level: environment.LOG_LEVEL,
    now: () => clock.now(),
    write: (line) => Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`)),
  });
  const background = createTrackedBackground(logger);
  const engineUrl = engineUrlOf(environment);
  const files = parts.tokenizer === undefined
    ? await loadTokenizerFiles(await tokenizerLocation(environment, engineUrl))
    : null;
  const tokenizer = parts.tokenizer ?? createHfTokenizer(files!);
  const engine = createSglangEngine({
    url: engineUrl,
    apiKey: environment.SGLANG_API_KEY,
    vocabSize: tokenizer.vocabSize,
    retryMs: environment.ENGINE_RETRY_S * 1000,
    idleTimeoutMs: environment.ENGINE_IDLE_TIMEOUT_S * 1000,
    clock,
    logger,
    background,
    random: Math.random,
  });
  const model = await buildModel(environment, { tokenizer, engine, clock, files, logger });
  const store = await openStore(environment, clock, logger);
  const services = composeServices({
    store,
    models: [model],
    clock,
    ids,
    logger,
    background,
    createMetrics: createPrometheusMetrics,
  }, environment);
  const stopSweeping = new AbortController();
  background.run("sweep expired tasks", sweepUntil(store, clock, stopSweeping.signal));
  return {
    services,
    async close() {
      stopSweeping.abort();
      await background.idle();
      await store.close();
      tokenizer.close();
    },
  };
}

/** A router, or a single worker. Several workers want a router in front. */
function engineUrlOf(environment: Environment): string {
  if (environment.SGLANG_ROUTER_URL !== undefined) return environment.SGLANG_ROUTER_URL;
  const [worker, ...more] = environment.ROLLOUT_EXTERNAL_ENGINE_ADDRS ?? [];
  if (more.length > 0) {
    throw new VerbatimError(
      "not_ready",
      "ROLLOUT_EXTERNAL_ENGINE_ADDRS names several workers: put a router before them and set SGLANG_ROUTER_URL",
    );
  }
  if (worker !== undefined) return worker;
  throw new VerbatimError(
    "not_ready",
    "No engine is configured: set SGLANG_ROUTER_URL to a router or a single worker (deno task dev brings an engine of its own)",
  );
}

/** Where the tokenizer is: as configured, else where the engine says it has its own. */
async function tokenizerLocation(environment: Environment, engineUrl: string): Promise<string> {
  if (environment.TOKENIZER !== undefined) return environment.TOKENIZER;
  try {
    const response = await fetch(`${engineUrl}/model_info`, {
      ...(environment.SGLANG_API_KEY === undefined
        ? {}
        : { headers: { authorization: `Bearer ${environment.SGLANG_API_KEY}` } }),
      signal: AbortSignal.timeout(STARTUP_CALL_MS),
    });
    const info: unknown = await response.json();
    if (
      typeof info === "object" && info !== null && "tokenizer_path" in info && typeof info.tokenizer_path === "string"
    ) {
      return info.tokenizer_path;
    }
  } catch (cause) {
    throw new VerbatimError(
      "not_ready",
      `TOKENIZER is not set and the engine at ${engineUrl} does not say where its own is: set TOKENIZER`,
      { cause },
    );
  }
  throw new VerbatimError("not_ready", "TOKENIZER is not set and the engine names none: set TOKENIZER");
}

async function buildModel(
  environment: Environment,
  parts: {
    readonly tokenizer: Tokenizer;
    readonly engine: Engine;
    readonly clock: Clock;
    readonly files: { readonly chatTemplate: string | null; readonly stopTokenIds: readonly number[] } | null;
    readonly logger: Logger;
  },
): Promise<Model> {
  const { tokenizer, engine, clock, files } = parts;
  const info = await engine.info(AbortSignal.timeout(STARTUP_CALL_MS)).catch((cause: unknown) => {
    // The engine may start after us; what it would have told is the model's name.
    parts.logger.warn("The engine does not answer yet", { cause: String(cause) });
    return null;
  });
  const chatTemplate = environment.CHAT_TEMPLATE === undefined
    ? files?.chatTemplate ?? null
    : await Deno.readTextFile(environment.CHAT_TEMPLATE);
  const renderer = createRenderer({
    tokenizer,
    toolCallParser: environment.TOOL_CALL_PARSER,
    reasoningParser: environment.REASONING_PARSER,
    createParser: createCompletionParser,
    now: () => clock.now(),
    ...(chatTemplate === null ? {} : { chatTemplate }),
    ...(files === null ? {} : { stopTokenIds: files.stopTokenIds }),
  });
  return {
    name: environment.MODEL_NAME ?? info?.modelPath ?? "default",
    renderer,
    engine,
    maxContextTokens: environment.MAX_CONTEXT_LEN,
    createdAtS: Math.floor(clock.now() / 1000),
  };
}

async function openStore(environment: Environment, clock: Clock, logger: Logger): Promise<TaskStore> {
  switch (environment.STORE) {
    case "memory":
      return createMemoryStore();
    case "kv": {
      const path = environment.KV_PATH;
      const isLocal = path === undefined || !/^https?:/.test(path);
      return openDenoKvStore({
        kv: await Deno.openKv(path),
        clock,
        logger,
        // A local database takes more checks an atomic write than a KV Connect server, and groups more commits in one.
        ...(isLocal ? { maxChecks: 40 } : {}),
      });
    }
  }
}

async function sweepUntil(store: TaskStore, clock: Clock, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await store.sweep(clock.now());
    await clock.sleep(SWEEP_MS, stop).catch(() => {});
  }
}
