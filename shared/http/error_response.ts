/** Errors on Verbatim's own endpoints: one shape, made in one place. */

import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { HTTPException } from "hono/http-exception";
import { VerbatimError } from "../core/errors.ts";
import type { Logger } from "../ports/logger.ts";

/** Turns anything thrown into a VerbatimError. What is not one becomes `internal` with a fixed sentence, its cause kept for the log. */
export function toVerbatimError(thrown: unknown): VerbatimError {
  if (thrown instanceof VerbatimError) return thrown;
  if (thrown instanceof HTTPException && thrown.status === 404) {
    return new VerbatimError("not_found", "There is no such endpoint", { cause: thrown });
  }
  return new VerbatimError("internal", "Something went wrong inside Verbatim; the log has the cause", {
    cause: thrown,
  });
}

/** Headers that tell a client whether and when to try again. */
export function retryHeaders(error: VerbatimError): Record<string, string> {
  return error.retryAfterS === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(error.retryAfterS))) };
}

/** An error as its JSON body. */
export function errorBody(error: VerbatimError): Record<string, unknown> {
  const { code, message, retryable, details } = error;
  return { error: { code, message, retryable, ...(details === undefined ? {} : { details }) } };
}

/** The answer to a failed call on an own endpoint. */
export function errorResponse(context: Context, error: VerbatimError): Response {
  return context.newResponse(JSON.stringify(errorBody(error)), {
    status: error.status as ContentfulStatusCode,
    headers: { "content-type": "application/json", ...retryHeaders(error) },
  });
}

/** Logs a failure at the level its status asks for: what the caller did is info, what we or the engine did is not. */
export function logFailure(logger: Logger, error: VerbatimError, fields: Record<string, unknown>): void {
  const all = { ...fields, code: error.code, error: error.message, cause: describeCause(error.cause) };
  if (error.code === "internal") logger.error("Call failed", all);
  else if (error.status >= 500) logger.warn("Call failed", all);
  else logger.info("Call refused", all);
}

function describeCause(cause: unknown): string | undefined {
  if (cause === undefined) return undefined;
  if (cause instanceof Error) {
    const inner = cause.cause === undefined ? "" : ` <- ${describeCause(cause.cause)}`;
    return (cause.stack ?? `${cause.name}: ${cause.message}`) + inner;
  }
  return String(cause);
}
