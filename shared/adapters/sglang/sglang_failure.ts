/** Every wrapping in which SGLang and its router report a failure, read into one `EngineFailure`. */

import { EngineFailure } from "./engine_failure.ts";

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
export function failureOfStatus(status: number, body: string, retryAfter: string | null): EngineFailure {
  const engineMessage = messageOf(body) ?? `status ${status} with no message`;
  const said = { status, engineMessage };
  if (NOT_NOW.has(status) || (status === 404 && NO_WORKER.test(engineMessage))) {
    const seconds = secondsOf(retryAfter);
    return new EngineFailure("busy", "The engine can't take the request now", {
      ...said,
      retryAfterMs: seconds === null ? null : seconds * 1000,
    });
  }
  if (status === 500 && WORKER_LOST.test(codeOf(body) ?? "")) {
    return new EngineFailure("unreachable", "The router can't reach its worker", said);
  }
  const kind = status >= 500 ? "failed" : "refused";
  return new EngineFailure(kind, `The engine refused the request with status ${status}`, said);
}

/** A `Retry-After` in seconds; its other form, a date, is not looked at. */
function secondsOf(retryAfter: string | null): number | null {
  return retryAfter !== null && /^\d{1,9}$/.test(retryAfter.trim()) ? Number(retryAfter) : null;
}

/** The failure in an error object that came as an event of a stream under status 200. */
export function failureOfEvent(error: unknown): EngineFailure {
  const object = isObject(error) ? error : {};
  const status = typeof object.code === "number" ? object.code : 500;
  return failureOfStatus(status, JSON.stringify({ error }), null);
}

/** The failure behind a finish of type `abort` where nothing was sampled: one with a status is what the status says. */
export function failureOfAbort(finish: Record<string, unknown>): EngineFailure {
  const engineMessage = abortMessage(finish);
  const status = typeof finish.status_code === "number" ? finish.status_code : null;
  if (status !== null) return failureOfStatus(status, JSON.stringify({ message: engineMessage }), null);
  return new EngineFailure("aborted", "The engine aborted the generation", { engineMessage });
}

/** The engine's words of an abort. */
export function abortMessage(finish: Record<string, unknown>): string {
  return typeof finish.message === "string" ? finish.message : "Aborted";
}

/** The text of `{error: {message}}`, `{error: "..."}`, `{message}`, plain text; null of an empty body. */
export function messageOf(body: string): string | null {
  if (body.trim() === "") return null;
  const parsed = parsedOf(body);
  if (!isObject(parsed)) return body.trim();
  if (isObject(parsed.error) && typeof parsed.error.message === "string") return parsed.error.message;
  if (typeof parsed.error === "string") return parsed.error;
  if (typeof parsed.message === "string") return parsed.message;
  return body.trim();
}

/** The code of `{error: {code}}` where it is a text. */
function codeOf(body: string): string | null {
  const parsed = parsedOf(body);
  const error = isObject(parsed) && isObject(parsed.error) ? parsed.error : {};
  return typeof error.code === "string" ? error.code : null;
}

function parsedOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
