/** An SGLang worker, or a router before several, behind the Teacher port: it only scores. One call is one attempt. */

import { VerbatimError } from "../../core/errors.ts";
import { TokenSeries } from "../../core/token_series.ts";
import type { Background } from "../../ports/background.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Teacher, TeacherInfo, TeacherScoreRequest, TeacherScores } from "../../ports/teacher.ts";
import { askByEitherName, MODEL_INFO, SERVER_INFO } from "./ask_by_either_name.ts";
import { EngineFailure, inconsistent, verbatimErrorOf } from "./engine_failure.ts";
import type { ScanExpectation } from "../scan/scan_arrays.ts";
import { type ScannedReply, ScoreScanner } from "../scan/scan_scores.ts";
import { abortOnWorkers } from "./sglang_abort.ts";
import { failureOfStatus, isObject } from "./sglang_failure.ts";
import { SglangWorkers } from "./sglang_workers.ts";
import { SilenceWatch } from "./silence_watch.ts";

/** What the adapter needs. */
export interface SglangTeacherOptions {
  /** A router, or a single worker. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** Ids of the sequences that are scored are below it. */
  readonly vocabSize: number;
  /** Prompt and response together: a sequence that fills it is sent without its last token, which is then told as output. */
  readonly maxContextTokens: number;
  /** Longest silence of a running request. */
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly background: Background;
  readonly fetch?: typeof fetch;
}

/** Models pad their vocabulary with rows that no text encodes to; an id of such a row may stand in a top list. */
const PADDING_IDS = 4096;

/** Makes the adapter. Nothing is sent before the first call. */
export function createSglangTeacher(options: SglangTeacherOptions): Teacher {
  const { clock, logger } = options;
  const workers = new SglangWorkers({
    place: { type: "router", url: options.url },
    apiKey: options.apiKey,
    clock,
    fetch: options.fetch,
  });
  const send = workers.fetch;
  const vocabSize = options.vocabSize + PADDING_IDS;
  const headers = workers.headers();

  async function attempt(request: TeacherScoreRequest, signal: AbortSignal): Promise<ScannedReply> {
    const watch = new SilenceWatch(clock, options.idleTimeoutMs);
    let answered = false;
    try {
      const response = await send(`${options.url}/generate`, {
        method: "POST",
        headers,
        body: scoreBody(request),
        signal: AbortSignal.any([signal, watch.signal]),
      });
      // A whole answer comes when the work is done: from here on there is nothing to abort.
      answered = true;
      watch.heard();
      if (!response.ok) {
        const text = await response.text();
        throw failureOfStatus(response.status, text, response.headers.get("retry-after"));
      }
      const scanner = new ScoreScanner({ ...request, vocabSize });
      for await (const bytes of response.body ?? []) {
        watch.heard();
        scanner.push(bytes);
      }
      return scanner.finish();
    } catch (cause) {
      signal.throwIfAborted();
      const failure: unknown = watch.signal.aborted ? watch.signal.reason : cause;
      if (failure instanceof EngineFailure) throw teacherError(failure);
      if (cause instanceof VerbatimError) throw cause;
      throw new VerbatimError("engine_unavailable", "The teacher can't be reached, or broke the connection", { cause });
    } finally {
      watch.end();
      if (!answered) options.background.run("abort on the teacher", abort(request.rid));
    }
  }

  async function abort(rid: string): Promise<void> {
    await abortOnWorkers(rid, { workers, url: null, over: null, clock, logger });
  }

  async function ask(path: string, signal: AbortSignal, body?: unknown): Promise<unknown> {
    try {
      const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
      const response = await send(`${options.url}${path}`, { ...init, headers, signal });
      const text = await response.text();
      if (!response.ok) throw failureOfStatus(response.status, text, response.headers.get("retry-after"));
      return JSON.parse(text);
    } catch (cause) {
      signal.throwIfAborted();
      throw cause instanceof EngineFailure
        ? cause
        : new EngineFailure("unreachable", "The teacher can't be reached", { cause });
    }
  }

  return {
    async score(request, signal) {
      const tokens = request.prompt.length + request.response.length;
      if (tokens < options.maxContextTokens || request.response.length === 0) {
        return scoresOf(await attempt(request, signal));
      }
      return await scoreFullContext(request, vocabSize, (shorter) => attempt(shorter, signal));
    },

    async info(signal): Promise<TeacherInfo> {
      const model = await askByEitherName(MODEL_INFO, (path) => ask(path, signal)).catch(throwAtPort);
      // Only some routers tell of their workers' context.
      const server = await askByEitherName(SERVER_INFO, (path) => ask(path, signal)).catch(() => {
        signal.throwIfAborted();
        return null;
      });
      const context = isObject(server) ? server.context_length : null;
      return {
        modelPath: textOf(model, "model_path"),
        tokenizerPath: textOf(model, "tokenizer_path"),
        weightVersion: textOf(model, "weight_version"),
        maxContextTokens: typeof context === "number" ? context : null,
      };
    },

    async tokenize(text, signal) {
      const reply = await ask("/tokenize", signal, { prompt: text, add_special_tokens: false }).catch((cause) => {
        const status = cause instanceof EngineFailure ? cause.status : null;
        if (status === 404 || status === 405 || status === 400) return null;
        return throwAtPort(cause);
      });
      const tokens = isObject(reply) ? reply.tokens : null;
      return Array.isArray(tokens) && tokens.every((id): id is number => Number.isInteger(id)) ? tokens : null;
    },
  };
}

function throwAtPort(cause: unknown): never {
  throw cause instanceof EngineFailure ? verbatimErrorOf(cause) : cause;
}

/** A request that can't be taken now may be taken later: the wait it asked for goes along. */
function teacherError(failure: EngineFailure): VerbatimError {
  const error = verbatimErrorOf(failure);
  if (!failure.retryable) return error;
  const { code, message, details, retryAfterS } = error;
  return new VerbatimError(code, message, {
    cause: failure,
    retryable: true,
    ...(details === undefined ? {} : { details }),
    ...(failure.retryAfterMs === null || retryAfterS === undefined ? {} : { retryAfterS }),
  });
}

function scoresOf(reply: ScannedReply): TeacherScores {
  const { meta, ...scores } = reply;
  return { ...scores, weightVersion: textOf(meta, "weight_version") };
}

/**
 * An engine refuses a prompt that fills its context. The last token is then left to be sampled: what the engine says of
 * the next token, at temperature 0 and so by the raw distribution, is what it would have said of that one.
 */
async function scoreFullContext(
  request: TeacherScoreRequest,
  vocabSize: number,
  attempt: (request: TeacherScoreRequest) => Promise<ScannedReply>,
): Promise<TeacherScores> {
  const { response, mask, topK, tokenIds } = request;
  const last = response.length - 1;
  const lastId = response[last]!;
  const wider = Uint32Array.of(...tokenIds, lastId);
  const reply = await attempt({
    ...request,
    response: response.subarray(0, last),
    mask: mask === null ? null : mask.subarray(0, last),
    tokenIds: wider,
  });
  const width = tokenIds.length;
  const rows = reply.logprobs.length;
  const kept = Float32Array.from(
    { length: rows * width },
    (_, at) => reply.tokenIdsLogprobs[Math.floor(at / width) * wider.length + at % width]!,
  );
  const scores = scoresOf(reply);
  if (mask !== null && mask[last] !== 1) return { ...scores, tokenIdsLogprobs: kept };
  const expected: ScanExpectation = {
    prompt: request.prompt,
    response: Uint32Array.of(lastId),
    mask: null,
    topK,
    tokenIds,
    vocabSize,
  };
  const one = readLast(reply.meta, expected);
  return {
    logprobs: joined(Float64Array, scores.logprobs, one.logprobs),
    topkIndices: joined(Int32Array, scores.topkIndices, one.topkIndices),
    topkLogprobs: joined(Float32Array, scores.topkLogprobs, one.topkLogprobs),
    tokenIdsLogprobs: joined(Float32Array, kept, one.tokenIdsLogprobs),
    weightVersion: scores.weightVersion,
  };
}

/** What is told of the sampled token's place, read and checked as if it were a reply of one position. */
function readLast(meta: Readonly<Record<string, unknown>>, expected: ScanExpectation): ScannedReply {
  const [chosen] = asList(meta.output_token_ids_logprobs);
  const entries = asList(chosen);
  const own = entries.at(-1);
  if (own === undefined) throw inconsistent("The engine's reply has no logprobs of its next token");
  const { prompt } = expected;
  const text = JSON.stringify({
    meta_info: {
      input_token_logprobs: [[null, prompt[prompt.length - 1], null], own],
      input_top_logprobs: [null, asList(asList(meta.output_top_logprobs)[0])],
      input_token_ids_logprobs: [null, entries.slice(0, -1)],
    },
  });
  const scanner = new ScoreScanner(expected);
  scanner.push(new TextEncoder().encode(text));
  return scanner.finish();
}

function joined<T extends { set(from: T, at?: number): void; readonly length: number }>(
  make: new (length: number) => T,
  first: T,
  second: T,
): T {
  const all = new make(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown, name: string): string | null {
  const field = isObject(value) ? value[name] : null;
  return typeof field === "string" ? field : null;
}

/**
 * Asks for the top lists as base64 of two flat arrays, a third of the bytes. It can always be asked for: a router drops
 * the fields and an engine that does not know them passes over them; both then answer in the nested form, as does an
 * engine whose lists have no flat form. The reader takes what comes.
 */
const FLAT_FORM = { return_flat_raw_top_logprobs: true, return_flat_raw_top_logprobs_b64: true };

/** One greedy step; logprobs from the prompt's last position, so that its prefix may be cached. */
function scoreBody(request: TeacherScoreRequest): Uint8Array<ArrayBuffer> {
  const { rid, prompt, response, topK, tokenIds } = request;
  const rest = JSON.stringify({
    rid,
    sampling_params: { max_new_tokens: 1, temperature: 0, skip_special_tokens: false },
    return_logprob: true,
    logprob_start_len: prompt.length - 1,
    ...(topK === 0 ? {} : { top_logprobs_num: topK, ...FLAT_FORM }),
    ...(tokenIds.length === 0 ? {} : { token_ids_logprob: Array.from(tokenIds) }),
    stream: false,
  });
  return TokenSeries.of(prompt).append(response).jsonBetween('{"input_ids":[', `],${rest.slice(1)}`);
}
