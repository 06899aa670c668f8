/**
 * One generation over as many engine calls as it takes: what an engine gives up (a weight update, a retraction) goes on
 * from the very tokens it had sampled. It knows tokens, not messages.
 */

import { VerbatimError } from "../../core/errors.ts";
import { afterTokens, carriesState } from "../../core/sampling.ts";
import { mayBeStopping } from "../../core/stop_strings.ts";
import type { Finish, VersionSegment } from "../../core/turn.ts";
import { addSegments } from "../../core/version_segments.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Engine, EngineChunk, EngineExtras, EngineRequest, TokensChunk, TopLogprobs } from "../../ports/engine.ts";
import type { Logger } from "../../ports/logger.ts";
import type { EngineGate } from "./engine_gate.ts";
import { GenerationExtras } from "../extras/generation_extras.ts";

/** What is generated, and for whom. */
export interface GenerationRequest extends EngineRequest {
  readonly engine: Engine;
  /** Those of one key wait behind each other, those of others beside them. */
  readonly fairKey: string;
  /** What an abort by the engine makes of it: it goes on, or it has failed. */
  readonly onAbort: "resume" | "fail";
  /** The text of ids, special tokens kept: where stop strings are looked for. */
  readonly decode: (ids: readonly number[]) => string;
}

/** Tokens as they come, then one end. Where the request does not stream, one chunk holds all tokens. */
export type GenerationChunk =
  | TokensChunk
  | {
    readonly type: "end";
    readonly finish: Finish;
    /** Of the prompt, as the first call found it. */
    readonly promptTokens: number | null;
    readonly cachedTokens: number | null;
    /** The engine's at the end. */
    readonly weightVersion: string | null;
    /** Which weights sampled what; they cover all tokens. */
    readonly weightVersions: readonly VersionSegment[];
    /** How often it went on after tokens. */
    readonly resumed: number;
    /** Time that was not the engine's: in the gate's queue, in a pause, before another try. */
    readonly waitedMs: number;
    /** What was asked for beside the tokens, of all of them. */
    readonly extras: EngineExtras;
  };

/** What generations need. */
export interface GenerationsOptions {
  readonly gate: EngineGate;
  /** How long a generation that gets no token is tried again. */
  readonly retryMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Calls that gave tokens and were given up, of one generation: more are no bad luck. */
const MOST_GIVEN_UP = 32;
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 2000;

/** Generates on the engines of one model. */
export class Generations {
  /** Who may generate now. */
  readonly gate: EngineGate;
  readonly #options: GenerationsOptions;
  #resumed = 0;

  constructor(options: GenerationsOptions) {
    this.#options = options;
    this.gate = options.gate;
  }

  /** How often generations went on after an abort, since the start. */
  get resumed(): number {
    return this.#resumed;
  }

  /**
   * Generates to the end. Failures are thrown as the engine port says; an abort that can't be gone on from is
   * `engine_failed`. Where more than the tokens decides what comes next, an aborted generation begins anew, provided that
   * none of it was given out.
   */
  async *run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<GenerationChunk> {
    const { gate, clock } = this.#options;
    let sofar = nothing(request);
    let [waitedMs, givenUp, resumed] = [0, 0, 0];
    const patience = new Patience(this.#options);
    for (let calls = 0;; calls++) {
      const enteringMs = clock.now();
      const place = await gate.enter(request.fairKey, { returning: calls > 0 }, signal);
      waitedMs += clock.now() - enteringMs;
      patience.extend(clock.now() - enteringMs);
      const before = sofar.ids.length;
      let ended: Exclude<EngineChunk, { type: "tokens" }> | null = null;
      try {
        for await (const chunk of request.engine.generate(nextCall(request, sofar, calls), signal)) {
          if (chunk.type !== "tokens") {
            ended = chunk;
            continue;
          }
          for (const id of chunk.ids) sofar.ids.push(id);
          for (const logprob of chunk.logprobs) sofar.logprobs.push(logprob);
          for (const top of chunk.top ?? []) sofar.top.push(top);
          if (request.stream) yield chunk;
        }
      } finally {
        place[Symbol.dispose]();
      }
      if (ended === null) throw new Error("The engine ended without an end");
      waitedMs += ended.waitedMs ?? 0;
      addPart(sofar, ended, before);
      const message = ended.type === "aborted" ? ended.message : "";
      if (ended.type === "aborted" && request.onAbort === "fail") {
        throw abortedError(message, "The engine aborted the generation");
      }
      const finish = ended.type === "end" ? ended.finish : finishOf(request, sofar);
      if (finish !== null) {
        if (!request.stream && sofar.ids.length > 0) yield tokensOf(sofar);
        yield {
          type: "end",
          finish,
          ...sofar.prompt,
          weightVersion: ended.type === "end" ? ended.weightVersion : sofar.segments.at(-1)?.version ?? null,
          weightVersions: sofar.segments,
          resumed,
          waitedMs,
          extras: sofar.extras.result(),
        };
        return;
      }
      const sampled = sofar.ids.length - before;
      if (sampled > 0 && ++givenUp > MOST_GIVEN_UP) {
        throw abortedError(message, `The engine aborted the generation ${givenUp} times`);
      }
      const state = stateBeyondTokens(request, sofar);
      if (state !== null && sofar.ids.length > 0) {
        if (request.stream) throw abortedError(message, `The engine aborted the generation, and ${state}`);
        sofar = nothing(request);
      } else if (sampled > 0) {
        resumed++;
        this.#resumed++;
      }
      this.#options.logger.debug("A generation that the engine aborted goes on", {
        rid: request.rid,
        tokens: sofar.ids.length,
        engine_message: message.slice(0, 500),
      });
      if (sampled > 0) patience.renew();
      else waitedMs += await patience.wait(message, signal);
    }
  }
}

/** What stands of a generation. */
interface SoFar {
  readonly ids: number[];
  readonly logprobs: number[];
  readonly top: TopLogprobs[];
  readonly segments: VersionSegment[];
  readonly extras: GenerationExtras;
  /** Prompt and the tokens of all calls before the one that runs. */
  series: EngineRequest["input"];
  prompt: { readonly promptTokens: number | null; readonly cachedTokens: number | null };
}

function nothing(request: EngineRequest): SoFar {
  const prompt = { promptTokens: null, cachedTokens: null };
  const extras = new GenerationExtras(request.extras);
  return { ids: [], logprobs: [], top: [], segments: [], extras, series: request.input, prompt };
}

function tokensOf({ ids, logprobs, top }: SoFar): TokensChunk {
  return { type: "tokens", ids, logprobs, ...(top.length === 0 ? {} : { top }) };
}

/**
 * The call for what is left. Its id is the generation's with a suffix of fixed length: none is a prefix of another's, and
 * the generation's own is one of all.
 */
function nextCall(request: GenerationRequest, sofar: SoFar, calls: number): EngineRequest {
  const { rid, sampling, routingKey, stream, topLogprobs } = request;
  const extras = sofar.extras.ask();
  return {
    rid: calls === 0 ? rid : `${rid}-c${String(calls).padStart(4, "0")}`,
    input: sofar.series,
    sampling: sofar.ids.length === 0 ? sampling : afterTokens(sampling, sofar.ids.length),
    routingKey,
    stream,
    ...(extras === null ? {} : { extras }),
    ...(topLogprobs === undefined ? {} : { topLogprobs }),
  };
}

/** Adds what a call left: which weights sampled its tokens, from `before` on, and what it said of the prompt. */
function addPart(sofar: SoFar, ended: Exclude<EngineChunk, { type: "tokens" }>, before: number): void {
  const count = sofar.ids.length - before;
  const whole = ended.type === "end"
    ? [{ version: ended.weightVersion, start: 0, end: count, exact: true }]
    : ended.weightVersions;
  addSegments(sofar.segments, ended.weightVersions ?? whole, before);
  sofar.extras.add({ extras: ended.extras, sampled: count, aborted: ended.type === "aborted" });
  // Later calls find the generation's own tokens in prompt and cache.
  if (before === 0) sofar.prompt = { promptTokens: ended.promptTokens, cachedTokens: ended.cachedTokens };
  if (ended.type === "aborted") sofar.series = sofar.series.append(Uint32Array.from(sofar.ids.slice(before)));
}

/**
 * How an aborted generation had ended already, or null. An engine looks for an abort before it looks for an end, so the
 * last token may be one that ends it: by a stop string, else by itself, else by the limit, as engines have it.
 */
function finishOf(request: GenerationRequest, { ids }: SoFar): Finish | null {
  const { sampling } = request;
  const last = ids.at(-1);
  if (last === undefined) return null;
  const tail = tailText(request, ids);
  const stop = tail === null ? undefined : sampling.stop?.find((one) => one !== "" && tail.includes(one));
  if (stop !== undefined) return { type: "stop", matched: stop };
  const mayStop = sampling.ignore_eos !== true && ids.length > (sampling.min_new_tokens ?? 0);
  if (mayStop && sampling.stop_token_ids?.includes(last) === true) return { type: "stop", matched: last };
  return ids.length >= (sampling.max_new_tokens ?? Infinity) ? { type: "length" } : null;
}

/** Why it can't go on from its tokens alone, or null where it can. */
function stateBeyondTokens(request: GenerationRequest, { ids }: SoFar): string | null {
  if (carriesState(request.sampling)) return "more than its tokens decides how it goes on";
  const tail = tailText(request, ids);
  return tail !== null && mayBeStopping(tail, request.sampling.stop ?? []) ? "a stop string was under way" : null;
}

/** As much text at the end as any stop string may reach back; null where there are no stop strings. */
function tailText({ sampling, decode }: GenerationRequest, ids: readonly number[]): string | null {
  const stops = sampling.stop ?? [];
  if (stops.length === 0) return null;
  // A token is a byte at least, a UTF-16 unit three bytes at most; some more, since special tokens may read as nothing.
  return decode(ids.slice(-(3 * Math.max(...stops.map((stop) => stop.length)) + 16)));
}

function abortedError(engineMessage: string, message: string): VerbatimError {
  return new VerbatimError("engine_failed", message, {
    details: { engine_message: engineMessage.slice(0, 500), aborted: true },
  });
}

/** How long calls without a token are repeated. Time in the gate's queue does not count. */
class Patience {
  readonly #options: GenerationsOptions;
  #untilMs: number | null = null;
  #tries = 0;

  constructor(options: GenerationsOptions) {
    this.#options = options;
  }

  /** There was a token. */
  renew(): void {
    this.#untilMs = null;
    this.#tries = 0;
  }

  /** Time that does not count has passed. */
  extend(ms: number): void {
    if (this.#untilMs !== null) this.#untilMs += ms;
  }

  /** Waits before the next call and tells how long; not at all while the gate is closed, which is then waited for. `engine_failed` once it has lasted too long. */
  async wait(engineMessage: string, signal: AbortSignal): Promise<number> {
    const { clock, gate, retryMs } = this.#options;
    if (gate.paused) {
      this.renew();
      return 0;
    }
    const nowMs = clock.now();
    this.#untilMs ??= nowMs + retryMs;
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** this.#tries++, LONGEST_BACKOFF_MS);
    if (nowMs + backoffMs > this.#untilMs) {
      throw abortedError(engineMessage, "The engine aborts the generation again and again");
    }
    await clock.sleep(backoffMs, signal);
    return clock.now() - nowMs;
  }
}
