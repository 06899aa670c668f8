/** Reads replies of SGLang's `/generate` and checks every claim in them. Each field is optional until it is needed. */

import type { VersionSegment } from "../core/turn.ts";
import type { EngineChunk } from "../ports/engine.ts";
import { failureOfAbort, inconsistent, isObject } from "./sglang_failure.ts";

/** What the replies of one request are checked against. */
export interface ReplyExpectation {
  readonly promptTokens: number;
  readonly vocabSize: number;
  readonly maxNewTokens: number;
}

/**
 * Reads the replies of one request: one whole reply, or frames that are cumulative or deltas. SGLang does not say
 * which; a frame's ids are counted against its `completion_tokens`, which is always cumulative.
 */
export class ReplyReader {
  readonly #expected: ReplyExpectation;
  #sampled = 0;
  #ended = false;
  #mode: "unknown" | "cumulative" | "incremental" = "unknown";
  #lastIds: readonly number[] = [];
  /** Everything read so far, for the whole that a cumulative stream ends with. */
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  #lastId: number | null = null;
  readonly #versions = new VersionsSeen();

  constructor(expected: ReplyExpectation) {
    this.#expected = expected;
  }

  /** Tokens read so far. */
  get sampled(): number {
    return this.#sampled;
  }

  /** Whether the last frame was read. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The chunks in one reply or frame. Failures and lies are thrown. */
  read(reply: unknown): EngineChunk[] {
    if (this.#ended) throw inconsistent("The engine went on after its last frame");
    if (!isObject(reply)) throw inconsistent("The engine's reply is not an object");
    const meta = isObject(reply.meta_info) ? reply.meta_info : {};
    const finish = isObject(meta.finish_reason) ? meta.finish_reason : null;
    // An aborted request's last frame may hold anything: its ids are not read.
    if (finish?.type === "abort") throw failureOfAbort(finish, this.#sampled > 0);
    const chunks: EngineChunk[] = [];
    const delta = this.#newTokens(reply, meta);
    this.#versions.note(meta.weight_version, this.#sampled);
    if (delta.ids.length > 0) chunks.push({ type: "tokens", ...delta });
    if (finish !== null) chunks.push(this.#end(meta, finish));
    return chunks;
  }

  #newTokens(reply: Record<string, unknown>, meta: Record<string, unknown>): { ids: number[]; logprobs: number[] } {
    const ids = reply.output_ids;
    if (!Array.isArray(ids)) throw inconsistent("The engine's reply has no output_ids");
    const pairs = meta.output_token_logprobs ?? (ids.length === 0 ? [] : undefined);
    if (!Array.isArray(pairs)) throw inconsistent("The engine's reply has no logprobs", { tokens: ids.length });
    const total = typeof meta.completion_tokens === "number" ? meta.completion_tokens : null;
    const skip = this.#alreadyRead(ids, total);
    if (pairs.length !== ids.length) {
      throw inconsistent(`The engine sent ${ids.length} tokens and ${pairs.length} logprobs`);
    }
    const fresh = ids.slice(skip);
    const logprobs = new Array<number>(fresh.length);
    for (let k = 0; k < fresh.length; k++) {
      const id = fresh[k];
      const position = this.#sampled + k;
      if (!Number.isInteger(id) || id < 0 || id >= this.#expected.vocabSize) {
        throw inconsistent(
          `The engine sampled id ${String(id)} outside the vocabulary of ${this.#expected.vocabSize}`,
          {
            position,
          },
        );
      }
      logprobs[k] = checkedLogprob(pairs[skip + k], id, position);
    }
    this.#sampled += fresh.length;
    if (total !== null && total !== this.#sampled) {
      throw inconsistent(`The engine counts ${total} sampled tokens and sent ${this.#sampled}`);
    }
    if (this.#sampled > this.#expected.maxNewTokens) {
      throw inconsistent(`The engine sampled ${this.#sampled} tokens of at most ${this.#expected.maxNewTokens}`);
    }
    if (fresh.length > 0) this.#lastId = fresh[fresh.length - 1];
    this.#lastIds = this.#mode === "incremental" ? [] : ids;
    for (let k = 0; k < fresh.length; k++) {
      this.#ids.push(fresh[k]);
      this.#logprobs.push(logprobs[k]!);
    }
    if (isObject(meta.finish_reason) && this.#mode === "cumulative") this.#checkWhole(ids, pairs);
    return { ids: fresh, logprobs };
  }

  /** How many of a frame's ids were read before. */
  #alreadyRead(ids: readonly unknown[], total: number | null): number {
    if (this.#sampled === 0) return 0;
    if (this.#mode === "unknown") {
      // The second frame decides. Without its count [5], [5] may be one token or two.
      if (total === null) throw inconsistent("The engine's stream does not count its tokens");
      this.#mode = ids.length === total ? "cumulative" : "incremental";
    }
    if (this.#mode === "incremental") return 0;
    if (ids.length < this.#sampled) throw inconsistent("The engine took back sampled tokens");
    // Only the last known id is compared, all of them at the end: at every frame it would cost the square of the length.
    const last = this.#lastIds.length - 1;
    if (last >= 0 && ids[last] !== this.#lastIds[last]) throw inconsistent("The engine changed a sampled token");
    return this.#sampled;
  }

  /** The last frame of a cumulative stream says everything again. */
  #checkWhole(ids: readonly unknown[], pairs: readonly unknown[]): void {
    const changed = this.#ids.findIndex((id, position) =>
      id !== ids[position] || checkedLogprob(pairs[position], id, position) !== this.#logprobs[position]
    );
    if (changed >= 0) throw inconsistent("The engine changed a sampled token or its logprob", { position: changed });
  }

  #end(meta: Record<string, unknown>, finish: Record<string, unknown>): EngineChunk {
    this.#ended = true;
    const promptTokens = typeof meta.prompt_tokens === "number" ? meta.prompt_tokens : null;
    if (promptTokens !== null && promptTokens !== this.#expected.promptTokens) {
      throw inconsistent(
        `The engine saw ${promptTokens} prompt tokens where ${this.#expected.promptTokens} were sent`,
      );
    }
    const weightVersions = this.#versions.segments(this.#sampled);
    const common = {
      type: "end" as const,
      promptTokens,
      cachedTokens: typeof meta.cached_tokens === "number" ? meta.cached_tokens : null,
      weightVersion: typeof meta.weight_version === "string" ? meta.weight_version : null,
      ...(weightVersions === null ? {} : { weightVersions }),
    };
    if (finish.type === "length") return { ...common, finish: { type: "length" } };
    if (finish.type === "stop") {
      const matched = finish.matched;
      if (matched === "NaN happened") throw inconsistent("The engine met NaN while sampling");
      if (typeof matched === "number" && matched !== this.#lastId) {
        throw inconsistent(`The engine stopped at token ${matched} and last sampled ${String(this.#lastId)}`);
      }
      return {
        ...common,
        finish: { type: "stop", matched: typeof matched === "number" || typeof matched === "string" ? matched : null },
      };
    }
    throw inconsistent(`The engine ended with an unknown finish "${String(finish.type)}"`);
  }
}

/**
 * The versions that the frames of one reply name. SGLang stamps a frame when it is sent: where weights change under a
 * running request, the place of the change is known to a frame, not to a token.
 */
class VersionsSeen {
  readonly #seen: { readonly version: string; end: number }[] = [];
  #changed = false;

  /** A frame names a version after so many sampled tokens. Frames that name none change nothing. */
  note(version: unknown, sampled: number): void {
    if (typeof version !== "string") return;
    const last = this.#seen.at(-1);
    this.#changed ||= last !== undefined && last.version !== version;
    if (last?.version === version) last.end = sampled;
    else if (sampled > (last?.end ?? 0)) this.#seen.push({ version, end: sampled });
  }

  /** Null where one version, or none, was named. */
  segments(sampled: number): VersionSegment[] | null {
    if (!this.#changed) return null;
    return this.#seen.map(({ version, end }, k) => ({
      version,
      start: this.#seen[k - 1]?.end ?? 0,
      end: k === this.#seen.length - 1 ? sampled : end,
      exact: false,
    }));
  }
}

/** The logprob of `[logprob, id, text]`; the id must be the sampled one and the value finite. */
function checkedLogprob(pair: unknown, id: number, position: number): number {
  if (!Array.isArray(pair)) throw inconsistent("A logprob entry is not a list", { position });
  const [logprob, of] = pair;
  if (of !== id) throw inconsistent(`The logprob at position ${position} is of id ${String(of)}, not of ${id}`);
  if (typeof logprob !== "number" || !Number.isFinite(logprob)) {
    throw inconsistent(`The logprob at position ${position} is ${String(logprob)}`);
  }
  return logprob;
}
