/** Failures of an OpenAI-compatible API, as the errors that callers see. It never repeats the key. */

import { VerbatimError, type VerbatimErrorOptions } from "../../core/errors.ts";
import { EngineFailure, verbatimErrorOf } from "../sglang/engine_failure.ts";

/** A caller is told to wait so long at most. */
const LONGEST_WAIT_S = 3600;

/** A failure, and whether the same request may be sent again by the backend itself. */
export interface BackendFailure {
  readonly error: VerbatimError;
  readonly mayRetry: boolean;
  /** What the API asked us to wait, or null. */
  readonly retryAfterMs: number | null;
}

/** What failures are told with. */
export interface FailureContext {
  readonly model: string;
  /** The variable that holds the key, or null. */
  readonly keyVariable: string | null;
  /** The key itself, which no message may hold. */
  readonly key: string | null;
  readonly nowMs: number;
}

/** What the package throws for a status, as far as it is looked at. */
interface StatusFailure {
  readonly status: number;
  readonly code: string | null;
  readonly message: string;
  readonly headers: Headers | null;
}

/** The failure behind what the package threw: a status, or a connection that could not be made or broke. */
export function failureOf(thrown: unknown, context: FailureContext): BackendFailure {
  if (thrown instanceof VerbatimError) return { error: thrown, mayRetry: false, retryAfterMs: null };
  // Silence: who asks again would be charged twice for what may still be on its way.
  if (thrown instanceof EngineFailure) return { error: verbatimErrorOf(thrown), mayRetry: false, retryAfterMs: null };
  const failure = statusFailure(thrown);
  const { model } = context;
  if (failure === null) return withoutStatus(thrown, context);
  const { status, code } = failure;
  const retryAfterMs = retryAfterOf(failure.headers, context.nowMs);
  const details = { engine_status: status, engine_message: shown(failure.message, context) };
  const final = (error: VerbatimError): BackendFailure => ({ error, mayRetry: false, retryAfterMs });
  const again = (error: VerbatimError): BackendFailure => ({ error, mayRetry: true, retryAfterMs });
  // An API's words on a key may hold a part of it: they go nowhere.
  if (status === 401 || status === 403) {
    const where = context.keyVariable === null ? "none is configured" : `see ${context.keyVariable}`;
    const message = `The backend of model "${model}" refused its key (${where})`;
    return final(
      new VerbatimError("engine_failed", message, { retryable: false, details: { engine_status: status } }),
    );
  }
  if (code === "context_length_exceeded") {
    return final(new VerbatimError("context_length_exceeded", details.engine_message, { details }));
  }
  if (code === "insufficient_quota") {
    const message = `The quota of model "${model}" is used up`;
    return final(new VerbatimError("engine_failed", message, { retryable: false, details }));
  }
  const waitS = Math.min(LONGEST_WAIT_S, Math.ceil((retryAfterMs ?? 1000) / 1000));
  const options: VerbatimErrorOptions = { details, retryAfterS: waitS };
  if (status === 429) {
    return again(new VerbatimError("busy", `The backend of model "${model}" is asked too much`, options));
  }
  if (status === 408 || status === 409 || status >= 500) {
    const message = `The backend of model "${model}" fails with status ${status}`;
    return again(new VerbatimError("engine_unavailable", message, options));
  }
  const message =
    `The backend of model "${model}" refused the request with status ${status}: ${details.engine_message}`;
  return final(new VerbatimError("engine_failed", message, { retryable: false, details }));
}

/** A connection that failed, a reply that is no JSON, or an error told amid a stream. */
function withoutStatus(thrown: unknown, context: FailureContext): BackendFailure {
  const { model } = context;
  if (thrown instanceof SyntaxError) {
    const error = new VerbatimError("engine_inconsistent", `The reply of model "${model}" is no JSON`);
    return { error, mayRetry: false, retryAfterMs: null };
  }
  if (thrown instanceof Error && "error" in thrown && thrown.error !== undefined) {
    const error = new VerbatimError("engine_failed", `The backend of model "${model}" failed amid its reply`, {
      details: { engine_message: shown(thrown.message, context) },
    });
    return { error, mayRetry: true, retryAfterMs: null };
  }
  const message = `The backend of model "${model}" can't be reached, or broke the connection`;
  return { error: new VerbatimError("engine_unavailable", message), mayRetry: true, retryAfterMs: null };
}

function shown(message: string, { key }: FailureContext): string {
  return (key === null ? message : message.replaceAll(key, "[key]")).slice(0, 500);
}

/** `Retry-After` in either form, or its finer kin; null where there is none that makes sense. */
function retryAfterOf(headers: Headers | null, nowMs: number): number | null {
  const fine = headers?.get("retry-after-ms")?.trim() ?? "";
  if (/^\d{1,12}(\.\d+)?$/.test(fine)) return Number(fine);
  const coarse = headers?.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}(\.\d+)?$/.test(coarse)) return Number(coarse) * 1000;
  const atMs = coarse === "" ? NaN : Date.parse(coarse);
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs);
}

function statusFailure(thrown: unknown): StatusFailure | null {
  if (!(thrown instanceof Error) || !("status" in thrown) || typeof thrown.status !== "number") return null;
  return {
    status: thrown.status,
    code: "code" in thrown && typeof thrown.code === "string" ? thrown.code : null,
    message: thrown.message,
    headers: "headers" in thrown && thrown.headers instanceof Headers ? thrown.headers : null,
  };
}
