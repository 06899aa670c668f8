/** What went wrong with one call to an engine, in one shape however it was wrapped. It knows no wire. */

import { VerbatimError } from "../../core/errors.ts";
import type { VersionSegment } from "../../core/turn.ts";

/** The kinds of failure. Whether to try again, and whether the worker is at fault, follows from the kind and the status. */
export type FailureKind =
  /** No connection, or a router that had none to its worker. */
  | "unreachable"
  /** A status that says "not now": 408, 429, 502, 503, 504, or the 404 of a router without a worker. */
  | "busy"
  /** Another status below 500: the request is at fault. */
  | "refused"
  /** Another status from 500 on. */
  | "failed"
  /** The engine gave the request up before it had sampled anything. */
  | "aborted"
  /** The answer began and broke off. */
  | "cut"
  /** Nothing was heard for too long. */
  | "silent"
  /** The answer says what can't be true. */
  | "inconsistent";

/** Tokens that had come, checked, before the failure. */
export interface PartialReply {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly weightVersions: readonly VersionSegment[];
}

/** What a failure may carry beside its kind and message. */
export interface EngineFailureOptions {
  /** The HTTP status, or the one that the engine named in a stream. */
  readonly status?: number | null;
  /** The engine's own words. */
  readonly engineMessage?: string | null;
  /** What the engine asked us to wait. */
  readonly retryAfterMs?: number | null;
  readonly partial?: PartialReply | null;
  /** Facts for the caller. */
  readonly details?: Record<string, unknown>;
  readonly cause?: unknown;
}

/** Longest message of an engine that is passed on. */
const MOST_MESSAGE = 500;
/** What a caller is told to wait where the engine did not say. */
const WAIT_S = 1;
/** And at most, whatever the engine said: who takes it at its word may never come back. */
const LONGEST_WAIT_S = 60;

/** One failed attempt. It stays within the adapters: callers get {@linkcode verbatimErrorOf} it. */
export class EngineFailure extends Error {
  readonly kind: FailureKind;
  readonly status: number | null;
  readonly engineMessage: string | null;
  readonly retryAfterMs: number | null;
  /** Null where nothing had come. */
  readonly partial: PartialReply | null;
  readonly details: Record<string, unknown>;

  constructor(kind: FailureKind, message: string, options: EngineFailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "EngineFailure";
    this.kind = kind;
    this.status = options.status ?? null;
    this.engineMessage = options.engineMessage?.slice(0, MOST_MESSAGE) ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.partial = options.partial ?? null;
    this.details = options.details ?? {};
  }

  /** Whether the same request may be sent again under another id. Never after a token: the caller may have shown it. */
  get retryable(): boolean {
    if (this.partial !== null) return false;
    return this.kind === "unreachable" || this.kind === "busy" || this.kind === "aborted" || this.kind === "cut";
  }

  /** Whether the worker is at fault, not the request or the load. A 503 is SGLang's word for a full queue. */
  get isFault(): boolean {
    if (this.kind === "busy") return this.status === 502 || this.status === 504;
    return this.kind !== "refused" && this.kind !== "aborted";
  }

  /** Whether the engine itself said that the request is over: an abort would find nothing. Routers say 408, 502 and 504. */
  get isOver(): boolean {
    if (this.kind === "busy") return this.status !== 408 && this.status !== 502 && this.status !== 504;
    return this.kind === "refused" || this.kind === "failed" || this.kind === "aborted";
  }

  /** The same failure after these tokens. */
  after(partial: PartialReply | null): EngineFailure {
    if (partial === null) return this;
    return new EngineFailure(this.kind, this.message, { ...this, partial, cause: this.cause });
  }
}

/** The engine said something that can't be true. */
export function inconsistent(message: string, details: Record<string, unknown> = {}, cause?: unknown): EngineFailure {
  return new EngineFailure("inconsistent", message, { details, cause });
}

/** What callers of the engine's port get. */
export function verbatimErrorOf(failure: EngineFailure): VerbatimError {
  const { message, cause, status } = failure;
  const said = {
    ...(status === null ? {} : { engine_status: status }),
    ...(failure.engineMessage === null ? {} : { engine_message: failure.engineMessage }),
  };
  switch (failure.kind) {
    case "unreachable":
      return new VerbatimError("engine_unavailable", message, {
        ...(status === null ? {} : { details: said }),
        cause,
        retryAfterS: WAIT_S,
      });
    case "busy": {
      const askedS = failure.retryAfterMs === null ? WAIT_S : failure.retryAfterMs / 1000;
      const retryAfterS = Math.min(askedS, LONGEST_WAIT_S);
      return new VerbatimError("engine_unavailable", message, { details: said, retryAfterS });
    }
    case "refused":
      return new VerbatimError("engine_failed", message, { details: said, retryable: false });
    case "failed":
      return new VerbatimError("engine_failed", message, { details: said, retryable: true });
    case "aborted":
      return new VerbatimError("engine_failed", message, { details: { ...said, aborted: true } });
    case "cut":
      return new VerbatimError("engine_failed", message, { cause });
    case "silent":
      return new VerbatimError("engine_timeout", message, { details: failure.details });
    case "inconsistent":
      return new VerbatimError("engine_inconsistent", message, { details: failure.details, cause });
  }
}
