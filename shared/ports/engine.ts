/** An SGLang worker or router, token-in/token-out. Adapter: sglang_engine. */

import type { Experts, TopPIds } from "../core/extra_arrays.ts";
import type { SamplingParams } from "../core/sampling.ts";
import type { TokenSeries } from "../core/token_series.ts";
import type { Finish, VersionSegment } from "../core/turn.ts";
import type { MissingExtra, SpecInfo } from "../core/turn_extras.ts";

/** What is wanted beside tokens and logprobs. */
export interface ExtrasAsked {
  /** The experts of the positions from this one to the one before the last sampled token. */
  readonly expertsFrom?: number;
  /** The ids that each sampled token was chosen from. */
  readonly topPIds?: true;
  /** What speculative decoding did. */
  readonly specInfo?: true;
}

/** What came of it: an entry for each that was asked for. Lengths fit the tokens, and each token is among its ids. */
export interface EngineExtras {
  readonly experts?: Experts | MissingExtra;
  readonly topPIds?: TopPIds | MissingExtra;
  readonly specInfo?: SpecInfo | MissingExtra;
}

export interface EngineRequest {
  /**
   * Fixed-length and unguessable. Each attempt's id on the engine is this plus a suffix of fixed length: no attempt's id
   * is a prefix of another's, and since engines abort by prefix, this one aborts every attempt.
   */
  readonly rid: string;
  readonly input: TokenSeries;
  /** `max_new_tokens` is always set. */
  readonly sampling: SamplingParams;
  readonly routingKey: string | null;
  /** Ask for tokens as they are sampled. Off, one chunk holds them all. */
  readonly stream: boolean;
  readonly extras?: ExtrasAsked;
  /** So many of the most likely tokens are told at each position; absent: none. */
  readonly topLogprobs?: number;
}

/** The most likely tokens of a position with their logprobs, the most likely first. */
export type TopLogprobs = readonly (readonly [logprob: number, id: number])[];

/** Sampled tokens. Ids and logprobs have one length, and the ids are in the vocabulary. */
export interface TokensChunk {
  readonly type: "tokens";
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  /** One list a token, where lists were asked for. */
  readonly top?: readonly TopLogprobs[];
}

/** Deltas, then one end or one abort. */
export type EngineChunk =
  | TokensChunk
  | {
    readonly type: "end";
    readonly finish: Finish;
    readonly promptTokens: number | null;
    readonly cachedTokens: number | null;
    readonly weightVersion: string | null;
    /** Where the weights were seen to change while it sampled: which sampled what, as far as the frames tell. */
    readonly weightVersions?: readonly VersionSegment[];
    /** Time that was not the engine's: before a worker had taken the request. Absent: none. */
    readonly waitedMs?: number;
    readonly extras?: EngineExtras;
  }
  /**
   * The engine gave the generation up after the tokens sent so far, if any, which stand as they are (a weight update, a
   * retraction, an abort by somebody else). Nothing follows. Whoever wants the rest asks for it from these tokens.
   */
  | {
    readonly type: "aborted";
    /** The engine's words. */
    readonly message: string;
    /** Which weights sampled the tokens so far. */
    readonly weightVersions: readonly VersionSegment[];
    readonly promptTokens: number | null;
    readonly cachedTokens: number | null;
    readonly waitedMs?: number;
    /** Of the tokens so far. Absent: nothing is known of them. */
    readonly extras?: EngineExtras;
  };

export interface EngineInfo {
  readonly modelPath: string | null;
  readonly tokenizerPath: string | null;
  readonly weightVersion: string | null;
}

/** logprobs of given tokens: entry k is log p(response[k] | prompt, response[0..k)). */
export interface ScoreRequest {
  readonly rid: string;
  readonly prompt: Uint32Array;
  readonly response: Uint32Array;
}

export interface Engine {
  /** Tokens as they come. Failures are thrown as `engine_*` errors; after the first chunk nothing is retried. Aborting the signal aborts the request on its worker. */
  generate(request: EngineRequest, signal: AbortSignal): AsyncIterable<EngineChunk>;
  /** Force-decodes: R float64 values, finite. */
  score(request: ScoreRequest, signal: AbortSignal): Promise<Float64Array>;
  /** Tells every worker to abort this request. Never throws; a worker that can't be reached is logged. */
  abort(rid: string): Promise<void>;
  info(signal: AbortSignal): Promise<EngineInfo>;
  /** Resolves when the engine answers its health check. */
  health(signal: AbortSignal): Promise<void>;
}
