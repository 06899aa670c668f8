/** An SGLang worker, or a router before several, behind the Engine port. It knows tokens, not messages. */

import { VerbatimError } from "../core/errors.ts";
import type { SamplingParams } from "../core/sampling.ts";
import { TokenSeries } from "../core/token_series.ts";
import type { Background } from "../ports/background.ts";
import type { Clock } from "../ports/clock.ts";
import type { Engine, EngineChunk, EngineInfo, EngineRequest, ScoreRequest } from "../ports/engine.ts";
import type { Logger } from "../ports/logger.ts";
import { readSse } from "./read_sse.ts";
import { failureOfEvent, failureOfStatus, inconsistent, isObject, RetryableFailure } from "./sglang_failure.ts";
import { ReplyReader } from "./sglang_reply.ts";
import { checkScores } from "./sglang_scores.ts";

/** What the adapter needs. */
export interface SglangEngineOptions {
  /** A router, or a single worker. */
  readonly url: string;
  readonly apiKey?: string | undefined;
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
  readonly fetch?: typeof fetch;
}

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 2000;
/** An abort is fire-and-forget on the engine's side and may miss a request between queue and batch; it is repeated. */
const ABORT_TRIES = 3;
const ABORT_GAP_MS = 250;
const SHORT_CALL_MS = 5000;

/** Makes the adapter. Nothing is sent before the first call. */
export function createSglangEngine(options: SglangEngineOptions): Engine {
  const send = options.fetch ?? fetch;
  const { clock, logger } = options;

  function headersFor(routingKey: string | null): Headers {
    const headers = new Headers({ "content-type": "application/json" });
    if (options.apiKey !== undefined) headers.set("authorization", `Bearer ${options.apiKey}`);
    if (routingKey !== null) headers.set("x-smg-routing-key", routingKey);
    return headers;
  }

  /** One POST to /generate. The watchdog aborts it after a silence; `touch` says that something was heard. */
  async function post(
    body: Uint8Array<ArrayBuffer>,
    routingKey: string | null,
    signal: AbortSignal,
  ): Promise<{ response: Response; touch: () => void; done: () => void; silence: AbortSignal }> {
    const silence = new AbortController();
    let timer = setTimeout(onSilence, options.idleTimeoutMs);
    function onSilence(): void {
      silence.abort(
        new VerbatimError("engine_timeout", `The engine was silent for ${options.idleTimeoutMs / 1000} s`, {
          details: { idle_timeout_s: options.idleTimeoutMs / 1000 },
        }),
      );
    }
    const touch = () => {
      clearTimeout(timer);
      timer = setTimeout(onSilence, options.idleTimeoutMs);
    };
    try {
      const response = await send(`${options.url}/generate`, {
        method: "POST",
        headers: headersFor(routingKey),
        body,
        signal: AbortSignal.any([signal, silence.signal]),
      });
      touch();
      return { response, touch, done: () => clearTimeout(timer), silence: silence.signal };
    } catch (cause) {
      clearTimeout(timer);
      signal.throwIfAborted();
      silence.signal.throwIfAborted();
      throw new RetryableFailure(
        new VerbatimError("engine_unavailable", "The engine can't be reached", { cause, retryAfterS: 1 }),
      );
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
        yield* readFrames(call.response, reader, call.touch);
      }
      if (!reader.ended) throw inconsistent("The engine's reply has no finish reason");
    } catch (cause) {
      signal.throwIfAborted();
      call.silence.throwIfAborted();
      if (cause instanceof VerbatimError || cause instanceof RetryableFailure) throw cause;
      const error = new VerbatimError("engine_failed", "The engine broke the connection", { cause });
      throw reader.sampled === 0 && !request.stream ? new RetryableFailure(error) : error;
    } finally {
      call.done();
      if (!reader.ended) await call.response.body?.cancel().catch(() => {});
    }
  }

  async function abortOn(url: string, rid: string): Promise<void> {
    const response = await send(`${url}/abort_request`, {
      method: "POST",
      headers: headersFor(null),
      body: JSON.stringify({ rid }),
      signal: AbortSignal.timeout(SHORT_CALL_MS),
    });
    await response.body?.cancel();
  }

  /** A router answers no abort itself: it lists its workers. A worker has no such list and is its own. */
  async function workerUrls(): Promise<string[]> {
    const response = await send(`${options.url}/workers`, {
      headers: headersFor(null),
      signal: AbortSignal.timeout(SHORT_CALL_MS),
    });
    const text = await response.text();
    if (!response.ok) return [options.url];
    const listed: unknown = JSON.parse(text);
    const workers = isObject(listed) && Array.isArray(listed.workers) ? listed.workers : [];
    const urls = workers.flatMap((worker) => isObject(worker) && typeof worker.url === "string" ? [worker.url] : []);
    return urls.length > 0 ? urls : [options.url];
  }

  async function get(path: string, signal: AbortSignal): Promise<Response> {
    const response = await send(`${options.url}${path}`, { headers: headersFor(null), signal });
    if (!response.ok) throw failureOfStatus(response.status, await response.text(), null);
    return response;
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
          if (!(cause instanceof RetryableFailure)) {
            if (cause instanceof VerbatimError && endedOnEngine(cause)) mayRun = false;
            throw cause;
          }
          mayRun = false;
          const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** tries, LONGEST_BACKOFF_MS) * (0.5 + options.random());
          const waitMs = cause.retryAfterMs ?? backoffMs;
          // After a token nothing is retried: the caller may have shown it.
          if (sampled || clock.now() + waitMs > deadlineMs) throw cause.error;
          logger.info("Engine call is tried again", { rid, tries: tries + 1, reason: cause.message });
          await clock.sleep(waitMs, signal);
        } finally {
          // Whatever ended the call early (the caller's abort, a silence, a lie): the engine must stop sampling.
          if (mayRun) options.background.run("abort on the engine", this.abort(rid));
        }
      }
    },

    async score(request, signal) {
      const call = await post(scoreBody(request), null, signal);
      try {
        const text = await call.response.text();
        if (!call.response.ok) throw failureOfStatus(call.response.status, text, null);
        return checkScores(parseReply(text), request);
      } catch (cause) {
        signal.throwIfAborted();
        call.silence.throwIfAborted();
        throw cause instanceof RetryableFailure ? cause.error : cause;
      } finally {
        call.done();
      }
    },

    async abort(rid) {
      for (let tries = 0; tries < ABORT_TRIES; tries++) {
        if (tries > 0) await clock.sleep(ABORT_GAP_MS);
        try {
          for (const url of await workerUrls()) await abortOn(url, rid);
        } catch (cause) {
          logger.debug("An abort did not reach the engine", { rid, cause: String(cause) });
        }
      }
    },

    async info(signal): Promise<EngineInfo> {
      const reply: unknown = await (await get("/model_info", signal)).json();
      const model = isObject(reply) ? reply : {};
      return {
        modelPath: typeof model.model_path === "string" ? model.model_path : null,
        tokenizerPath: typeof model.tokenizer_path === "string" ? model.tokenizer_path : null,
        weightVersion: typeof model.weight_version === "string" ? model.weight_version : null,
        maxContextTokens: typeof model.max_model_len === "number" ? model.max_model_len : null,
        vocabSize: null,
      };
    },

    async health(signal) {
      await (await get("/health", signal)).body?.cancel();
    },
  };
}

/** Whether the engine itself said that the request is over: an abort would find nothing. */
function endedOnEngine(error: VerbatimError): boolean {
  return error.details?.engine_status !== undefined || error.details?.aborted === true;
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
    if (isObject(frame) && frame.error !== undefined) throw failureOfEvent(frame.error);
    yield* reader.read(frame);
  }
  if (!done) throw new VerbatimError("engine_failed", "The engine's stream was cut before its end");
}
