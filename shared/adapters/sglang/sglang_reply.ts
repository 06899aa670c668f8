/** Reads replies of SGLang's `/generate` and checks every claim in them. Each field is optional until it is needed. */

import type { Finish } from "../../core/turn.ts";
import type { EngineChunk, EngineExtras, ExtrasAsked, TopLogprobs } from "../../ports/engine.ts";
import { EngineFailure, inconsistent, type PartialReply } from "./engine_failure.ts";
import { ExtrasReader } from "./sglang_extras.ts";
import { abortMessage, failureOfAbort, isObject } from "./sglang_failure.ts";
import type { VersionWatch } from "./version_ledger.ts";
import { VersionSpans } from "./version_spans.ts";

/** What the replies of one request are checked against. */
export interface ReplyExpectation {
  readonly promptTokens: number;
  readonly vocabSize: number;
  readonly maxNewTokens: number;
  /** How many of the most likely tokens were asked for. */
  readonly topLogprobs: number;
  /** What was known of the worker's weights when the request was sent. */
  readonly versions: VersionWatch;
  /** What was asked for beside the tokens. */
  readonly extras?: ExtrasAsked | undefined;
}

type Mode = "unknown" | "cumulative" | "incremental";

/** The new tokens of one frame, checked and not yet taken. */
interface Delta {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly top: readonly TopLogprobs[] | null;
  /** What the frame was taken for. */
  readonly mode: Mode;
  /** All ids of the frame. */
  readonly frameIds: readonly number[];
}

/**
 * Reads the replies of one request: one whole reply, or frames that are cumulative or deltas. SGLang does not say
 * which; a frame's ids are counted against its `completion_tokens`, which is always cumulative.
 */
export class ReplyReader {
  readonly #expected: ReplyExpectation;
  #ended = false;
  #mode: Mode = "unknown";
  #lastIds: readonly number[] = [];
  /** Everything read so far, for the whole that a cumulative stream ends with. */
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #spans: VersionSpans;
  readonly #extras: ExtrasReader | null;

  constructor(expected: ReplyExpectation) {
    this.#expected = expected;
    this.#spans = new VersionSpans(expected.versions);
    this.#extras = expected.extras === undefined ? null : new ExtrasReader(expected.extras, expected);
  }

  /** Tokens read so far. */
  get sampled(): number {
    return this.#ids.length;
  }

  /** Whether the last frame was read. */
  get ended(): boolean {
    return this.#ended;
  }

  /** What was read so far; null where that is nothing. */
  get partial(): PartialReply | null {
    const { sampled } = this;
    if (sampled === 0) return null;
    return { ids: this.#ids, logprobs: this.#logprobs, weightVersions: this.#spans.segments(sampled) };
  }

  /** The chunks in one reply or frame. Failures and lies are thrown, as `EngineFailure`. */
  read(reply: unknown): EngineChunk[] {
    if (this.#ended) throw inconsistent("The engine went on after its last frame");
    if (!isObject(reply)) throw inconsistent("The engine's reply is not an object");
    const meta = isObject(reply.meta_info) ? reply.meta_info : {};
    const finish = isObject(meta.finish_reason) ? meta.finish_reason : null;
    if (finish?.type === "abort") return this.#readAbort(reply, meta, finish);
    const delta = this.#check(reply, meta, finish !== null);
    this.#take(delta, meta);
    const chunks: EngineChunk[] = delta.ids.length === 0 ? [] : [tokensOf(delta)];
    if (finish !== null) chunks.push(this.#end(meta, finish));
    return chunks;
  }

  /** An aborted request's last frame may hold anything: its tokens are taken only where all of it checks out. */
  #readAbort(
    reply: Record<string, unknown>,
    meta: Record<string, unknown>,
    finish: Record<string, unknown>,
  ): EngineChunk[] {
    const promptTokens = this.#promptTokens(meta);
    const delta = this.#checkAborted(reply, meta);
    if (delta !== null) this.#take(delta, meta);
    // Before any token a status of its own makes it a refusal like another; without one it was given up, as after tokens.
    if (this.sampled === 0 && typeof finish.status_code === "number") throw failureOfAbort(finish);
    this.#ended = true;
    const aborted: EngineChunk = {
      type: "aborted",
      message: abortMessage(finish),
      weightVersions: this.#spans.segments(this.sampled),
      promptTokens,
      cachedTokens: numberOf(meta.cached_tokens),
      ...this.#extrasSaid(),
    };
    return delta === null || delta.ids.length === 0 ? [aborted] : [tokensOf(delta), aborted];
  }

  #checkAborted(reply: Record<string, unknown>, meta: Record<string, unknown>): Delta | null {
    // Without a count, what a later frame holds may be a delta, the whole, or the last id alone.
    if (this.sampled > 0 && typeof meta.completion_tokens !== "number") return null;
    try {
      const delta = this.#check(reply, meta, true);
      return this.#mode === "unknown" && this.#saysAgain(delta) ? null : delta;
    } catch (cause) {
      if (cause instanceof EngineFailure) return null;
      throw cause;
    }
  }

  /**
   * Whether a delta begins with all that was read before. Where no frame has shown yet which kind they are, it may be the
   * whole with a wrong count: an engine that gives up may count tokens that it does not send.
   */
  #saysAgain({ ids, logprobs, mode }: Delta): boolean {
    return mode === "incremental" && ids.length >= this.sampled &&
      this.#ids.every((id, k) => ids[k] === id && logprobs[k] === this.#logprobs[k]);
  }

  /** Checks a frame and changes nothing. `last`: a cumulative frame is compared whole with what was read. */
  #check(reply: Record<string, unknown>, meta: Record<string, unknown>, last: boolean): Delta {
    const ids = reply.output_ids;
    if (!Array.isArray(ids)) throw inconsistent("The engine's reply has no output_ids");
    const pairs = meta.output_token_logprobs ?? (ids.length === 0 ? [] : undefined);
    if (!Array.isArray(pairs)) throw inconsistent("The engine's reply has no logprobs", { tokens: ids.length });
    const { sampled } = this;
    const total = numberOf(meta.completion_tokens);
    const mode = this.#modeOf(ids, total);
    const skip = mode === "cumulative" ? this.#alreadyRead(ids) : 0;
    if (pairs.length !== ids.length) {
      throw inconsistent(`The engine sent ${ids.length} tokens and ${pairs.length} logprobs`);
    }
    const fresh = ids.slice(skip);
    const logprobs = new Array<number>(fresh.length);
    for (let k = 0; k < fresh.length; k++) {
      const id = fresh[k];
      const position = sampled + k;
      if (!Number.isInteger(id) || id < 0 || id >= this.#expected.vocabSize) {
        const { vocabSize } = this.#expected;
        throw inconsistent(`The engine sampled id ${String(id)} outside the vocabulary of ${vocabSize}`, { position });
      }
      logprobs[k] = checkedLogprob(pairs[skip + k], id, position);
    }
    const now = sampled + fresh.length;
    if (total !== null && total !== now) {
      throw inconsistent(`The engine counts ${total} sampled tokens and sent ${now}`);
    }
    if (now > this.#expected.maxNewTokens) {
      throw inconsistent(`The engine sampled ${now} tokens of at most ${this.#expected.maxNewTokens}`);
    }
    if (last && mode === "cumulative") this.#checkWhole(ids, pairs);
    return { ids: fresh, logprobs, top: this.#topOf(meta, fresh.length), mode, frameIds: ids };
  }

  /** The lists of a frame's last so many tokens; null where none were asked for. */
  #topOf(meta: Record<string, unknown>, count: number): TopLogprobs[] | null {
    const { topLogprobs } = this.#expected;
    if (topLogprobs === 0) return null;
    const lists = meta.output_top_logprobs ?? (count === 0 ? [] : undefined);
    if (!Array.isArray(lists) || lists.length < count) {
      throw inconsistent("The engine's reply has no top logprobs", { tokens: count });
    }
    const { sampled } = this;
    return lists.slice(lists.length - count).map((list, k) => checkedTop(list, topLogprobs, sampled + k));
  }

  #take(delta: Delta, meta: Record<string, unknown>): void {
    this.#mode = delta.mode;
    this.#lastIds = delta.mode === "incremental" ? [] : delta.frameIds;
    for (let k = 0; k < delta.ids.length; k++) {
      this.#ids.push(delta.ids[k]!);
      this.#logprobs.push(delta.logprobs[k]!);
    }
    this.#spans.note(meta.weight_version, this.sampled);
    this.#extras?.note(meta, { fresh: delta.ids.length, sampled: this.sampled });
  }

  /** The second frame with tokens before it decides. Without its count [5], [5] may be one token or two. */
  #modeOf(ids: readonly unknown[], total: number | null): Mode {
    if (this.sampled === 0 || this.#mode !== "unknown") return this.#mode;
    if (total === null) throw inconsistent("The engine's stream does not count its tokens");
    return ids.length === total ? "cumulative" : "incremental";
  }

  /** How many of a cumulative frame's ids were read before. */
  #alreadyRead(ids: readonly unknown[]): number {
    if (ids.length < this.sampled) throw inconsistent("The engine took back sampled tokens");
    // Only the last known id is compared, all of them at the end: at every frame it would cost the square of the length.
    const last = this.#lastIds.length - 1;
    if (last >= 0 && ids[last] !== this.#lastIds[last]) throw inconsistent("The engine changed a sampled token");
    return this.sampled;
  }

  /** The last frame of a cumulative stream says everything again. */
  #checkWhole(ids: readonly unknown[], pairs: readonly unknown[]): void {
    const changed = this.#ids.findIndex((id, position) =>
      id !== ids[position] || checkedLogprob(pairs[position], id, position) !== this.#logprobs[position]
    );
    if (changed >= 0) throw inconsistent("The engine changed a sampled token or its logprob", { position: changed });
  }

  #promptTokens(meta: Record<string, unknown>): number | null {
    const told = numberOf(meta.prompt_tokens);
    const { promptTokens } = this.#expected;
    if (told === null || told === promptTokens) return told;
    throw inconsistent(`The engine saw ${told} prompt tokens where ${promptTokens} were sent`);
  }

  #end(meta: Record<string, unknown>, finish: Record<string, unknown>): EngineChunk {
    this.#ended = true;
    const promptTokens = this.#promptTokens(meta);
    const weightVersions = this.#spans.segments(this.sampled);
    return {
      type: "end",
      finish: this.#finishOf(finish),
      promptTokens,
      cachedTokens: numberOf(meta.cached_tokens),
      // A last frame that names none changes nothing of what was named before.
      weightVersion: typeof meta.weight_version === "string"
        ? meta.weight_version
        : weightVersions.at(-1)?.version ?? null,
      ...(weightVersions.every(({ exact }) => exact) ? {} : { weightVersions }),
      ...this.#extrasSaid(),
    };
  }

  #extrasSaid(): { readonly extras?: EngineExtras } {
    return this.#extras === null ? {} : { extras: this.#extras.end(this.#ids) };
  }

  #finishOf(finish: Record<string, unknown>): Finish {
    if (finish.type === "length") return { type: "length" };
    if (finish.type !== "stop") throw inconsistent(`The engine ended with an unknown finish "${String(finish.type)}"`);
    const { matched } = finish;
    if (matched === "NaN happened") throw inconsistent("The engine met NaN while sampling");
    const last = this.#ids.at(-1);
    if (typeof matched === "number" && matched !== last) {
      throw inconsistent(`The engine stopped at token ${matched} and last sampled ${String(last ?? null)}`);
    }
    return { type: "stop", matched: typeof matched === "number" || typeof matched === "string" ? matched : null };
  }
}

function tokensOf({ ids, logprobs, top }: Delta): EngineChunk {
  return { type: "tokens", ids, logprobs, ...(top === null ? {} : { top }) };
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

/** A probability of 1 may be rounded up by so much. */
const ROUNDING = 1e-3;

/** The logprob of `[logprob, id, text]`; the id must be the sampled one and the value a logarithm of a probability. */
function checkedLogprob(pair: unknown, id: number, position: number): number {
  if (!Array.isArray(pair)) throw inconsistent("A logprob entry is not a list", { position });
  const [logprob, of] = pair;
  if (of !== id) throw inconsistent(`The logprob at position ${position} is of id ${String(of)}, not of ${id}`);
  if (typeof logprob !== "number" || !Number.isFinite(logprob) || logprob > ROUNDING) {
    throw inconsistent(`The logprob at position ${position} is ${String(logprob)}`);
  }
  return logprob;
}

/** A position's list, exactly so long, of finite logprobs that never rise. A grammar leaves fewer tokens: what it forbids is left out. */
function checkedTop(list: unknown, count: number, position: number): TopLogprobs {
  if (!Array.isArray(list) || list.length !== count) {
    throw inconsistent(`The top list at position ${position} has not ${count} entries`);
  }
  const top: [number, number][] = [];
  for (const entry of list) {
    const [logprob, id] = Array.isArray(entry) ? entry : [];
    if (!Number.isInteger(id)) throw inconsistent(`An id of the top list at position ${position} is ${String(id)}`);
    // Infinity is null in JSON.
    if (logprob === null || logprob === -Infinity) continue;
    if (typeof logprob !== "number" || !Number.isFinite(logprob) || logprob > (top.at(-1)?.[0] ?? Infinity)) {
      throw inconsistent(`A logprob of the top list at position ${position} is ${String(logprob)}`);
    }
    top.push([logprob, id]);
  }
  return top;
}
