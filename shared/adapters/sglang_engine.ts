/** An SGLang worker, or a router before several, behind the Engine port. It knows tokens, not messages. */

import { VerbatimError } from "../core/errors.ts";
import type { SamplingParams } from "../core/sampling.ts";
import { TokenSeries } from "../core/token_series.ts";
import type { Background } from "../ports/background.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine, EngineChunk, EngineInfo, EngineRequest, ScoreRequest } from "../ports/engine.ts";
import type { Logger } from "../ports/logger.ts";
import { askByEitherName, MODEL_INFO } from "./ask_by_either_name.ts";
import { readSse } from "./read_sse.ts";
import { abortOnWorkers } from "./sglang_abort.ts";
import { failureOfEvent, failureOfStatus, inconsistent, isObject, RetryableFailure } from "./sglang_failure.ts";
import { ReplyReader } from "./sglang_reply.ts";
import { checkScores } from "./sglang_scores.ts";
import { SglangWorkers } from "./sglang_workers.ts";
import { SilenceWatch } from "./silence_watch.ts";

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
  /** How long an engine that can't take a request is tried again. */
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
  const { clock, logger } = options;
  const workers = "workers" in options ? options.workers : new SglangWorkers({
    place: { type: "router", url: options.url },
    apiKey: options.apiKey,
    clock,
    fetch: options.fetch,
  });
  const send = workers.fetch;
  const url = workers.place.type === "router" ? workers.place.url : workers.place.urls[0];

  /** One POST to /generate. The watch aborts it after a silence; whoever gets the answer ends the watch. */
  async function post(
    body: Uint8Array<ArrayBuffer>,
    routingKey: string | null,
    signal: AbortSignal,
  ): Promise<{ response: Response; watch: SilenceWatch }> {
    const watch = new SilenceWatch(clock, options.idleTimeoutMs, workers.pauses.of(null));
    try {
      const response = await send(`${url}/generate`, {
        method: "POST",
        headers: workers.headers(routingKey),
        body,
        signal: AbortSignal.any([signal, watch.signal]),
      });
      watch.heard();
      return { response, watch };
    } catch (cause) {
      watch.end();
      signal.throwIfAborted();
      watch.signal.throwIfAborted();
      throw new RetryableFailure(unreachable(cause));
    }
  }

  async function* attempt(request: EngineRequest, rid: string, signal: AbortSignal): AsyncGenerator<EngineChunk> {
    const reader = new ReplyReader({
      promptTokens: request.input.length,
      vocabSize: options.vocabSize,
      maxNewTokens: request.sampling.max_new_tokens ?? Infinity,
    });
    const call = await post(generateBody(request, rid), request.routingKey, signal);
    try {
      if (!call.response.ok) {
        const text = await call.response.text();
        throw failureOfStatus(call.response.status, text, call.response.headers.get("retry-after"));
      }
      if (!request.stream) {
        yield* reader.read(parseReply(await call.response.text()));
      } else {
        yield* readFrames(call.response, reader, () => call.watch.heard());
      }
      if (!reader.ended) throw inconsistent("The engine's reply has no finish reason");
    } catch (cause) {
      signal.throwIfAborted();
      call.watch.signal.throwIfAborted();
      if (cause instanceof VerbatimError || cause instanceof RetryableFailure) throw cause;
      const error = brokenOff(cause);
      throw reader.sampled === 0 ? new RetryableFailure(error) : error;
    } finally {
      call.watch.end();
      if (!reader.ended) await call.response.body?.cancel().catch(() => {});
    }
  }

  /** A short question. Its failures are `engine_*` errors. */
  async function get(path: string, signal: AbortSignal): Promise<string> {
    try {
      const response = await send(`${url}${path}`, { headers: workers.headers(), signal });
      const text = await response.text();
      if (!response.ok) throw failureOfStatus(response.status, text, response.headers.get("retry-after"));
      return text;
    } catch (cause) {
      signal.throwIfAborted();
      const error = withoutRetry(cause);
      throw error instanceof VerbatimError ? error : unreachable(error);
    }
  }

  return {
    async *generate(request, signal) {
      const deadlineMs = clock.now() + options.retryMs;
      for (let tries = 0;; tries++) {
        const rid = attemptId(request.rid, tries);
        let sampled = false;
        let mayRun = true;
        try {
          for await (const chunk of attempt(request, rid, signal)) {
            sampled ||= chunk.type === "tokens";
            if (chunk.type === "end") mayRun = false;
            yield chunk;
          }
          return;
        } catch (cause) {
          if (endedOnEngine(withoutRetry(cause))) mayRun = false;
          if (!(cause instanceof RetryableFailure)) throw cause;
          const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** tries, LONGEST_BACKOFF_MS) * (0.5 + options.random());
          const waitMs = cause.retryAfterMs ?? backoffMs;
          // After a token nothing is retried: the caller may have shown it.
          if (sampled || clock.now() + waitMs > deadlineMs) throw cause.error;
          logger.info("Engine call is tried again", { rid, tries: tries + 1, reason: cause.message });
          await clock.sleep(waitMs, signal);
        } finally {
          // Whatever ended the attempt early (the caller's abort, a silence, a break, a lie): the engine must stop sampling.
          if (mayRun) options.background.run("abort on the engine", this.abort(rid));
        }
      }
    },

    async score(request, signal) {
      const call = await post(scoreBody(request), null, signal).catch((cause: unknown) => {
        throw withoutRetry(cause);
      });
      try {
        const text = await call.response.text();
        if (!call.response.ok) {
          throw failureOfStatus(call.response.status, text, call.response.headers.get("retry-after"));
        }
        return checkScores(parseReply(text), request);
      } catch (cause) {
        signal.throwIfAborted();
        call.watch.signal.throwIfAborted();
        const error = withoutRetry(cause);
        throw error instanceof VerbatimError ? error : brokenOff(error);
      } finally {
        call.watch.end();
      }
    },

    async abort(rid) {
      await abortOnWorkers(rid, { url, headers: workers.headers(), clock, logger, fetch: send });
    },

    async info(signal): Promise<EngineInfo> {
      const reply = parseReply(await askByEitherName(MODEL_INFO, (path) => get(path, signal)));
      const model = isObject(reply) ? reply : {};
      return {
        modelPath: typeof model.model_path === "string" ? model.model_path : null,
        tokenizerPath: typeof model.tokenizer_path === "string" ? model.tokenizer_path : null,
        weightVersion: typeof model.weight_version === "string" ? model.weight_version : null,
      };
    },

    async health(signal) {
      await get("/health", signal);
    },
  };
}

/** Statuses that a router gives for a worker which may still be at it. */
const SAID_BY_ROUTERS: ReadonlySet<unknown> = new Set([408, 502, 504]);

/** Whether the engine itself said that the request is over: an abort would find nothing. */
function endedOnEngine(error: unknown): boolean {
  if (!(error instanceof VerbatimError)) return false;
  const { engine_status: status, aborted, worker_lost: workerLost } = error.details ?? {};
  if (workerLost === true) return false;
  return aborted === true || (status !== undefined && !SAID_BY_ROUTERS.has(status));
}

/** What the caller gets where nothing is tried again. */
function withoutRetry(cause: unknown): unknown {
  return cause instanceof RetryableFailure ? cause.error : cause;
}

function unreachable(cause: unknown): VerbatimError {
  return new VerbatimError("engine_unavailable", "The engine can't be reached", { cause, retryAfterS: 1 });
}

function brokenOff(cause: unknown): VerbatimError {
  return new VerbatimError("engine_failed", "The engine broke the connection", { cause });
}

/** Suffixes have one length, so that no attempt's id is a prefix of another's. */
function attemptId(rid: string, tries: number): string {
  return `${rid}-${String(tries).padStart(4, "0")}`;
}

/** The body; the ids come from the series' kept JSON text and are not serialised again. */
function generateBody(request: EngineRequest, rid: string): Uint8Array<ArrayBuffer> {
  const sampling: SamplingParams = { ...request.sampling, skip_special_tokens: false };
  const rest = JSON.stringify({
    rid,
    sampling_params: sampling,
    return_logprob: true,
    logprob_start_len: -1,
    stream: request.stream,
  });
  return bodyOf(request.input, rest);
}

/** One greedy step over prompt and response; logprobs from the prompt's last position, so that its prefix may be cached. */
function scoreBody(request: ScoreRequest): Uint8Array<ArrayBuffer> {
  const rest = JSON.stringify({
    rid: attemptId(request.rid, 0),
    sampling_params: { max_new_tokens: 1, temperature: 0, skip_special_tokens: false },
    return_logprob: true,
    logprob_start_len: request.prompt.length - 1,
    stream: false,
  });
  return bodyOf(TokenSeries.of(request.prompt).append(request.response), rest);
}

/** `rest`: the body's other fields as a JSON object. */
function bodyOf(input: TokenSeries, rest: string): Uint8Array<ArrayBuffer> {
  return input.jsonBetween('{"input_ids":[', `],${rest.slice(1)}`);
}

function parseReply(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new VerbatimError("engine_inconsistent", "The engine's reply is not JSON", { cause });
  }
}

async function* readFrames(response: Response, reader: ReplyReader, touch: () => void): AsyncGenerator<EngineChunk> {
  if (response.body === null) throw inconsistent("The engine's stream has no body");
  let done = false;
  for await (const data of readSse(response.body)) {
    touch();
    if (data === "[DONE]") {
      done = true;
      break;
    }
    const frame = parseReply(data);
    if (isObject(frame) && frame.error !== undefined && frame.error !== null) throw failureOfEvent(frame.error);
    yield* reader.read(frame);
  }
  if (!done) throw new VerbatimError("engine_failed", "The engine's stream was cut before its end");
}
