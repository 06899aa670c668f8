/** SGLang workers, alone, several or behind a router, as the Engine port. It knows tokens, not messages. */

import type { Background } from "../../ports/background.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Engine, EngineChunk, EngineInfo, EngineRequest } from "../../ports/engine.ts";
import type { Logger } from "../../ports/logger.ts";
import { askByEitherName, MODEL_INFO } from "./ask_by_either_name.ts";
import { EngineFailure, inconsistent, verbatimErrorOf } from "./engine_failure.ts";
import { readSse } from "../read_sse.ts";
import { abortOnWorkers } from "./sglang_abort.ts";
import { attemptId, generateBody, parseReply, scoreBody } from "./sglang_body.ts";
import { checkRequest } from "./sglang_check.ts";
import { failureOfEvent, failureOfStatus, isObject } from "./sglang_failure.ts";
import { ReplyReader } from "./sglang_reply.ts";
import { checkScores } from "./sglang_scores.ts";
import { SglangWorkers } from "./sglang_workers.ts";
import { WorkerCall } from "./worker_call.ts";
import type { WorkerLease } from "./worker_pool.ts";

/** What the adapter needs. */
export type SglangEngineOptions =
  & SglangEngineSettings
  & (
    /** A router, or a single worker. */
    | { readonly url: string; readonly apiKey?: string | undefined; readonly fetch?: typeof fetch }
    /** Workers that are shared with a control. */
    | { readonly workers: SglangWorkers }
  );

/** What does not depend on where the engine is. */
export interface SglangEngineSettings {
  /** Ids are below it, in and out. */
  readonly vocabSize: number;
  /** How long a request that fails before its first token is tried again, from its first failure on. */
  readonly retryMs: number;
  /** Longest silence of a running request. */
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly background: Background;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
}

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 2000;

/** Makes the adapter. Nothing is sent before the first call. */
export function createSglangEngine(options: SglangEngineOptions): Engine {
  const { clock, logger, background } = options;
  const workers = "workers" in options ? options.workers : new SglangWorkers({
    place: { type: "router", url: options.url },
    apiKey: options.apiKey,
    clock,
    fetch: options.fetch,
  });
  const settings = { workers, idleTimeoutMs: options.idleTimeoutMs, clock, logger, background };

  /** One attempt: deltas, then an end or an abort. Whatever else ends it is thrown as an `EngineFailure`. */
  async function* attempt(
    request: EngineRequest,
    rid: string,
    lease: WorkerLease,
    signal: AbortSignal,
  ): AsyncGenerator<EngineChunk> {
    const reader = new ReplyReader({
      promptTokens: request.input.length,
      vocabSize: options.vocabSize,
      topLogprobs: request.topLogprobs ?? 0,
      maxNewTokens: request.sampling.max_new_tokens ?? Infinity,
      versions: workers.versions.watch(workers.servedBy(lease.url)),
      extras: request.extras,
    });
    const body = generateBody(request, rid);
    const call = new WorkerCall(settings, { lease, rid, body, routingKey: request.routingKey, signal });
    try {
      let end: EngineChunk | null = null;
      for await (const reply of request.stream ? framesOf(call) : [parseReply(await call.text())]) {
        const chunks = reader.read(reply);
        if (chunks.length > 0) call.heard();
        learnFrom(reply, lease.url);
        for (const chunk of chunks) {
          // The end is only believed once the answer itself has ended well. What comes after an abort changes nothing.
          if (chunk.type === "end") {
            end = chunk;
            continue;
          }
          if (chunk.type === "aborted") call.finished();
          yield chunk;
          if (chunk.type === "aborted") return;
        }
      }
      if (end === null) throw inconsistent("The engine's reply has no finish reason");
      call.finished();
      yield end;
    } catch (cause) {
      throw call.failed(cause).after(reader.partial);
    } finally {
      call.leave();
    }
  }

  /** What a reply says of the weights is what the next ones are measured against. */
  function learnFrom(reply: unknown, url: string): void {
    const meta = isObject(reply) && isObject(reply.meta_info) ? reply.meta_info : {};
    if (typeof meta.weight_version !== "string" || !workers.noteVersion(url, meta.weight_version)) return;
    background.run("ask the workers for their weights", workers.learnVersions(new AbortController().signal));
  }

  /** A short question to one URL. */
  async function get(url: string, path: string, signal: AbortSignal): Promise<string> {
    try {
      const response = await workers.fetch(`${url}${path}`, { headers: workers.headers(), signal });
      const text = await response.text();
      if (!response.ok) throw failureOfStatus(response.status, text, response.headers.get("retry-after"));
      return text;
    } catch (cause) {
      signal.throwIfAborted();
      throw cause instanceof EngineFailure ? cause : unreachable(cause);
    }
  }

  /** The first good answer of whoever takes calls. Failures are `engine_*` errors. */
  async function askAny<T>(ask: (url: string) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { place } = workers;
    try {
      return await Promise.any((place.type === "router" ? [place.url] : place.urls).map(ask));
    } catch (cause) {
      signal.throwIfAborted();
      throw portError(cause instanceof AggregateError ? cause.errors[0] : cause);
    }
  }

  return {
    async *generate(request, signal) {
      const calledAtMs = clock.now();
      await checkRequest(request, { vocabSize: options.vocabSize, workers });
      let deadlineMs: number | null = null;
      let avoid: string | null = null;
      for (let tries = 0;; tries++) {
        signal.throwIfAborted();
        const rid = attemptId(request.rid, tries);
        const waitedMs = tries === 0 ? 0 : clock.now() - calledAtMs;
        const lease = workers.pool.take(request.routingKey, avoid);
        try {
          for await (const chunk of attempt(request, rid, lease, signal)) {
            yield chunk.type === "tokens" || waitedMs === 0 ? chunk : { ...chunk, waitedMs };
          }
          return;
        } catch (cause) {
          if (!(cause instanceof EngineFailure)) throw cause;
          const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** tries, LONGEST_BACKOFF_MS) * (0.5 + options.random());
          const waitMs = Math.max(backoffMs, cause.retryAfterMs ?? 0);
          // From the first failure on: a long generation that is lost at its end may still be had from another worker.
          deadlineMs ??= clock.now() + options.retryMs;
          if (!cause.retryable || clock.now() + waitMs > deadlineMs) throw verbatimErrorOf(cause);
          const { kind, message } = cause;
          logger.info("Engine call is tried again", {
            rid,
            tries: tries + 1,
            worker: lease.url,
            kind,
            reason: message,
          });
          avoid = lease.url;
          await clock.sleep(waitMs, signal);
        } finally {
          // Also where no call came of it.
          lease.done("left");
        }
      }
    },

    async score(request, signal) {
      signal.throwIfAborted();
      const rid = attemptId(request.rid, 0);
      const lease = workers.pool.take(null);
      const call = new WorkerCall(settings, { lease, rid, body: scoreBody(request, rid), routingKey: null, signal });
      try {
        const scores = checkScores(parseReply(await call.text()), request);
        call.finished();
        return scores;
      } catch (cause) {
        throw portError(call.failed(cause));
      } finally {
        call.leave();
      }
    },

    async abort(rid) {
      await abortOnWorkers(rid, { workers, url: null, over: null, clock, logger });
    },

    async info(signal): Promise<EngineInfo> {
      const model = await askAny(async (url) => {
        const reply = parseReply(await askByEitherName(MODEL_INFO, (path) => get(url, path, signal)));
        return isObject(reply) ? reply : {};
      }, signal);
      await workers.learnVersions(signal);
      return {
        modelPath: typeof model.model_path === "string" ? model.model_path : null,
        tokenizerPath: typeof model.tokenizer_path === "string" ? model.tokenizer_path : null,
        weightVersion: typeof model.weight_version === "string" ? model.weight_version : null,
      };
    },

    async health(signal) {
      await askAny((url) => get(url, "/health", signal), signal);
    },
  };
}

/** The frames of a stream up to `[DONE]`, without which it was cut. */
async function* framesOf(call: WorkerCall): AsyncGenerator<unknown> {
  for await (const data of readSse(call.bytes())) {
    if (data === "[DONE]") return;
    const frame = parseReply(data);
    if (isObject(frame) && frame.error !== undefined && frame.error !== null) throw failureOfEvent(frame.error);
    yield frame;
  }
  throw new EngineFailure("cut", "The engine's stream was cut before its end");
}

function unreachable(cause: unknown): EngineFailure {
  return new EngineFailure("unreachable", "The engine can't be reached", { cause });
}

/** What callers of the port get. */
function portError(cause: unknown): unknown {
  return cause instanceof EngineFailure ? verbatimErrorOf(cause) : cause;
}
