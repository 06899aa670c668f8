/** The served model from the environment: engine, tokenizer files, renderer. Shared by the compositions; it opens no store. */

import { askByEitherName, MODEL_INFO } from "./adapters/sglang/ask_by_either_name.ts";
import type { TokenizerFiles } from "./adapters/tokenizer/load_tokenizer_files.ts";
import { withSamplingTrials } from "./adapters/sglang/sampling_trial.ts";
import { createSglangControl } from "./adapters/sglang/sglang_control.ts";
import { createSglangEngine } from "./adapters/sglang/sglang_engine.ts";
import { failureOfStatus, isObject } from "./adapters/sglang/sglang_failure.ts";
import { type EnginePlace, SglangWorkers } from "./adapters/sglang/sglang_workers.ts";
import { VerbatimError } from "./core/errors.ts";
import type { Background } from "./ports/background.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Logger } from "./ports/logger.ts";
import type { Tokenizer } from "./ports/tokenizer.ts";
import { createCompletionParser } from "./rendering/create_completion_parser.ts";
import { createRenderer } from "./rendering/create_renderer.ts";
import type { Environment } from "./schemas/environment.ts";
import { EngineGate } from "./services/engines/engine_gate.ts";
import type { Model } from "./services/model_catalog.ts";
import { Generations } from "./services/engines/resume_generation.ts";

/** How long the engine may take to say what it serves while we start. */
const STARTUP_CALL_MS = 10_000;

/** What a model is made with. */
export interface ModelParts {
  readonly tokenizer: Tokenizer;
  /** The tokenizer's files, where the tokenizer was made from files. */
  readonly files: Pick<TokenizerFiles, "chatTemplate" | "stopTokenIds"> | null;
  /** Reads CHAT_TEMPLATE, where the host has files. */
  readonly readTextFile?: (path: string) => Promise<string>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly background: Background;
}

/** The model. A renderer that fails its checks stops the start; an engine that does not answer yet does not. */
export async function composeModel(environment: Environment, parts: ModelParts): Promise<Model> {
  const { tokenizer, files, clock, ids, logger, background } = parts;
  const workers = new SglangWorkers({ place: enginePlace(environment), apiKey: environment.SGLANG_API_KEY, clock });
  const sglang = createSglangEngine({
    workers,
    vocabSize: tokenizer.vocabSize,
    retryMs: environment.ENGINE_RETRY_S * 1000,
    idleTimeoutMs: environment.ENGINE_IDLE_TIMEOUT_S * 1000,
    clock,
    logger,
    background,
    random: Math.random,
  });
  const engine = withSamplingTrials(sglang, { tokenizer, clock, newRid: () => ids.uuid() });
  const chatTemplate = environment.CHAT_TEMPLATE === undefined
    ? files?.chatTemplate ?? null
    : await readTemplate(environment.CHAT_TEMPLATE, parts.readTextFile);
  const renderer = createRenderer({
    tokenizer,
    toolCallParser: environment.TOOL_CALL_PARSER,
    reasoningParser: environment.REASONING_PARSER,
    createParser: createCompletionParser,
    now: () => clock.now(),
    ...(chatTemplate === null ? {} : { chatTemplate }),
    ...(files === null ? {} : { stopTokenIds: files.stopTokenIds }),
  });
  // Asked always: what the engine says now of its weights is what the first turns are measured against.
  const info = await engine.info(AbortSignal.timeout(STARTUP_CALL_MS)).catch((cause: unknown) => {
    logger.warn("The engine does not answer yet", { cause: String(cause) });
    return null;
  });
  const name = environment.MODEL_NAME ?? info?.modelPath;
  return {
    name: name ?? "default",
    renderer,
    engine,
    control: createSglangControl({ workers, logger }),
    generations: composeGenerations(environment, { clock, logger }),
    maxContextTokens: environment.MAX_CONTEXT_LEN,
    createdAtS: Math.floor(clock.now() / 1000),
  };
}

/** Admission to a model's engines, with the limits of the environment. */
export function composeGenerations(
  environment: Environment,
  parts: { readonly clock: Clock; readonly logger: Logger },
): Generations {
  const gate = new EngineGate({
    mostRunning: environment.ENGINE_MAX_CONCURRENCY,
    mostWaiting: environment.ENGINE_MAX_QUEUE,
    clock: parts.clock,
  });
  return new Generations({ ...parts, gate, retryMs: environment.ENGINE_RETRY_S * 1000 });
}

/** Where the engine is: behind a router (or alone), or workers that this process chooses among. */
function enginePlace(environment: Environment): EnginePlace {
  if (environment.SGLANG_ROUTER_URL !== undefined) {
    if (environment.ROLLOUT_EXTERNAL_ENGINE_ADDRS === undefined) {
      return { type: "router", url: environment.SGLANG_ROUTER_URL };
    }
    throw new VerbatimError(
      "not_ready",
      "SGLANG_ROUTER_URL and ROLLOUT_EXTERNAL_ENGINE_ADDRS are both set: set the router, or the workers",
    );
  }
  const [worker, ...more] = new Set(environment.ROLLOUT_EXTERNAL_ENGINE_ADDRS ?? []);
  if (worker !== undefined) return { type: "workers", urls: [worker, ...more] };
  throw new VerbatimError(
    "not_ready",
    "No engine is configured: set SGLANG_ROUTER_URL to a router or a single worker, or " +
      "ROLLOUT_EXTERNAL_ENGINE_ADDRS to workers (deno task dev brings an engine of its own)",
  );
}

/** Where the tokenizer is: as configured, else where the engine says it has its own. */
export async function tokenizerLocation(environment: Environment): Promise<string> {
  if (environment.TOKENIZER !== undefined) return environment.TOKENIZER;
  const place = enginePlace(environment);
  const urls = place.type === "router" ? [place.url] : place.urls;
  const answers = urls.map((url) => toldTokenizer(url, environment.SGLANG_API_KEY));
  const told = await Promise.any(answers).catch((cause: unknown) => {
    throw new VerbatimError(
      "not_ready",
      `TOKENIZER is not set, and the engine at ${
        urls.join(", ")
      }, which would say where its own is, does not answer: ` +
        "start it first, or set TOKENIZER",
      { cause: cause instanceof AggregateError ? cause.errors[0] : cause },
    );
  });
  if (told !== null) return told;
  throw new VerbatimError("not_ready", "TOKENIZER is not set and the engine names none: set TOKENIZER");
}

/** The tokenizer that a worker or router names, or null. Rejects where it does not answer. */
async function toldTokenizer(url: string, apiKey: string | undefined): Promise<string | null> {
  const headers = new Headers(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` });
  const text = await askByEitherName(MODEL_INFO, async (path) => {
    const response = await fetch(url + path, { headers, signal: AbortSignal.timeout(STARTUP_CALL_MS) });
    const body = await response.text();
    if (!response.ok) throw failureOfStatus(response.status, body, null);
    return body;
  });
  const info: unknown = JSON.parse(text);
  return isObject(info) && typeof info.tokenizer_path === "string" ? info.tokenizer_path : null;
}

async function readTemplate(path: string, read: ModelParts["readTextFile"]): Promise<string> {
  if (read === undefined) {
    throw new VerbatimError(
      "not_ready",
      "CHAT_TEMPLATE names a file, and this host has none: put it into the tokenizer's folder",
    );
  }
  try {
    return await read(path);
  } catch (cause) {
    throw new VerbatimError("not_ready", `CHAT_TEMPLATE ${path} can't be read`, { cause });
  }
}
