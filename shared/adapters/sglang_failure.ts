/** Every wrapping in which SGLang and its router report a failure, read into one kind of error. */

import { VerbatimError } from "../core/errors.ts";

/** Whether the same request may be sent again by the gateway itself, before any token was seen. */
export class RetryableFailure extends Error {
  /** What the caller gets if no attempt succeeds. */
  readonly error: VerbatimError;
  /** What the engine asked us to wait, or null. */
  readonly retryAfterMs: number | null;

  constructor(error: VerbatimError, retryAfterMs: number | null = null) {
    super(error.message, { cause: error });
    this.error = error;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Statuses with which a router or an engine says "not now". */
const NOT_NOW: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/**
 * Codes of a router that lost its worker, under a 500: it could not reach it, or the answer broke off. The worker may
 * still be at it.
 */
const WORKER_LOST = /^(call_upstream|read_response)_/;
/** What a router without any worker says; its 404 speaks of a model nobody asked for. */
const NO_WORKER = /^No worker available\b/;

/** The failure behind an HTTP status and its body: JSON nested or flat, text/plain, or nothing. */
export function failureOfStatus(status: number, body: string, retryAfter: string | null): Error {
  const message = messageOf(body) ?? `status ${status} with no message`;
  const workerLost = status === 500 && WORKER_LOST.test(codeOf(body));
  const details = {
    engine_status: status,
    engine_message: message.slice(0, 500),
    ...(workerLost ? { worker_lost: true } : {}),
  };
  if (NOT_NOW.has(status) || workerLost || (status === 404 && NO_WORKER.test(message))) {
    const seconds = secondsOf(retryAfter);
    return new RetryableFailure(
      new VerbatimError("engine_unavailable", "The engine can't take the request now", {
        details,
        retryAfterS: seconds ?? 1,
      }),
      seconds === null ? null : seconds * 1000,
    );
  }
  return new VerbatimError("engine_failed", `The engine refused the request with status ${status}`, {
    details,
    retryable: status >= 500,
  });
}

/** A `Retry-After` in seconds; its other form, a date, is not looked at. */
function secondsOf(retryAfter: string | null): number | null {
  return retryAfter !== null && /^\d{1,9}$/.test(retryAfter.trim()) ? Number(retryAfter) : null;
}

/** The failure in an error object that came as an event of a stream under status 200. */
export function failureOfEvent(error: unknown): Error {
  const object = isObject(error) ? error : {};
  const status = typeof object.code === "number" ? object.code : 500;
  return failureOfStatus(status, JSON.stringify({ error }), null);
}

/** The failure behind a finish of type `abort`. A queue abort with a 5xx status of its own may be tried again. */
export function failureOfAbort(finish: Record<string, unknown>, sampledAny: boolean): Error {
  const message = typeof finish.message === "string" ? finish.message : "Aborted";
  const status = typeof finish.status_code === "number" ? finish.status_code : null;
  if (status !== null && !sampledAny) return failureOfStatus(status, JSON.stringify({ message }), null);
  return new VerbatimError("engine_failed", "The engine aborted the generation", {
    details: { engine_message: message.slice(0, 500), aborted: true },
  });
}

/** The engine said something that can't be true. */
export function inconsistent(message: string, details: Record<string, unknown> = {}): VerbatimError {
  return new VerbatimError("engine_inconsistent", message, { details });
}

/** The text of `{error: {message}}`, `{error: "..."}`, `{message}`, plain text; null of an empty body. */
export function messageOf(body: string): string | null {
  if (body.trim() === "") return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return body.trim();
  }
  if (!isObject(parsed)) return body.trim();
  if (isObject(parsed.error) && typeof parsed.error.message === "string") return parsed.error.message;
  if (typeof parsed.error === "string") return parsed.error;
  if (typeof parsed.message === "string") return parsed.message;
  return body.trim();
}

/** The code of `{error: {code}}`; empty where there is none. */
function codeOf(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    const error = isObject(parsed) ? parsed.error : null;
    return isObject(error) && typeof error.code === "string" ? error.code : "";
  } catch {
    return "";
  }
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
