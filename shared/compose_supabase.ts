/**
 * The composition for Supabase's edge runtime and hosts like it: no Deno KV, no workers of our own, no native packages.
 * The host keeps isolates apart, so state in memory is only good for calls that need none (generate, tokenize) and for
 * trying things out; it must be asked for.
 */

import { createHfTokenizer } from "./adapters/hf_tokenizer.ts";
import { createJsonLogger } from "./adapters/json_logger.ts";
import { loadTokenizerFiles } from "./adapters/load_tokenizer_files.ts";
import { createMemoryStore } from "./adapters/memory_store.ts";
import { createPrometheusMetrics } from "./adapters/prometheus_metrics.ts";
import { createRandomIds } from "./adapters/random_ids.ts";
import { readEnvironment } from "./adapters/read_environment.ts";
import { createSglangEngine } from "./adapters/sglang_engine.ts";
import { systemClock } from "./adapters/system_clock.ts";
import { createTrackedBackground } from "./adapters/tracked_background.ts";
import { type ComposedServices, composeServices } from "./compose_services.ts";
import { VerbatimError } from "./core/errors.ts";
import { createCompletionParser } from "./rendering/create_completion_parser.ts";
import { createRenderer } from "./rendering/create_renderer.ts";

/** The hook by which an edge host keeps an isolate alive for background work. */
interface EdgeHost {
  readonly EdgeRuntime?: { waitUntil(work: Promise<unknown>): void };
}

/** Reads the environment and builds the services; nothing happens before the call. */
export async function composeSupabase(): Promise<ComposedServices> {
  const environment = readEnvironment();
  const { SGLANG_ROUTER_URL: url, TOKENIZER, VERBATIM_ADMIN_KEY } = environment;
  if (url === undefined) throw new VerbatimError("not_ready", "No engine is configured: set SGLANG_ROUTER_URL");
  if (TOKENIZER === undefined) throw new VerbatimError("not_ready", "TOKENIZER is not set: give the URL of its folder");
  if (VERBATIM_ADMIN_KEY === undefined) {
    throw new VerbatimError("not_ready", "VERBATIM_ADMIN_KEY must be set on this host");
  }
  if (environment.STORE !== "memory") {
    throw new VerbatimError(
      "not_ready",
      "This host has no Deno KV. STORE=memory serves generate, tokenize and trials; tasks need a host with Deno KV",
    );
  }
  const clock = systemClock;
  const ids = createRandomIds(clock);
  const logger = createJsonLogger({
    level: environment.LOG_LEVEL,
    now: () => clock.now(),
    write: (line) => Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`)),
  });
  const host: typeof globalThis & EdgeHost = globalThis;
  const background = createTrackedBackground(logger, (work) => host.EdgeRuntime?.waitUntil(work));
  const files = await loadTokenizerFiles(TOKENIZER);
  const tokenizer = createHfTokenizer(files);
  const renderer = createRenderer({
    tokenizer,
    toolCallParser: environment.TOOL_CALL_PARSER,
    reasoningParser: environment.REASONING_PARSER,
    createParser: createCompletionParser,
    stopTokenIds: files.stopTokenIds,
    ...(files.chatTemplate === null ? {} : { chatTemplate: files.chatTemplate }),
  });
  const engine = createSglangEngine({
    url,
    apiKey: environment.SGLANG_API_KEY,
    vocabSize: tokenizer.vocabSize,
    retryMs: environment.ENGINE_RETRY_S * 1000,
    idleTimeoutMs: environment.ENGINE_IDLE_TIMEOUT_S * 1000,
    clock,
    logger,
    background,
    random: Math.random,
  });
  const model = {
    name: environment.MODEL_NAME ?? "default",
    renderer,
    engine,
    maxContextTokens: environment.MAX_CONTEXT_LEN,
    createdAtS: Math.floor(clock.now() / 1000),
  };
  return composeServices({
    store: createMemoryStore(),
    models: [model],
    clock,
    ids,
    logger,
    background,
    createMetrics: createPrometheusMetrics,
  }, environment);
}
