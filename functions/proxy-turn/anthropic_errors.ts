/** Errors as Anthropic's API words them. */

import type { VerbatimError } from "../../shared/core/errors.ts";
import { agentStatus, type DialectErrors } from "./dialect.ts";

/** `{"type": "error", "error": {type, message, code}, "request_id"}`. */
export const anthropicErrors: DialectErrors = {
  response: (error, requestId) => ({
    status: agentStatus(error),
    body: { ...anthropicErrorBody(error), request_id: requestId },
  }),
};

/** An error's body, as it also comes in a stream. `code` is Verbatim's own; details come where the API has a code for them. */
export function anthropicErrorBody(error: VerbatimError): Record<string, unknown> {
  const known = error.details?.error_code === undefined ? {} : { details: error.details };
  return { type: "error", error: { type: typeOf(error), message: messageOf(error), code: error.code, ...known } };
}

function typeOf(error: VerbatimError): string {
  // Clients take an overload for a reason to try again whatever else the answer says; a closed task stays closed.
  if (error.code === "task_closed") return "api_error";
  const status = agentStatus(error);
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

/** Scaffolds know an overflow by these words. A prompt that fills the context leaves no room for a single token. */
function messageOf(error: VerbatimError): string {
  if (error.code !== "context_length_exceeded") return error.message;
  const most = Number(error.details?.max_context_tokens);
  const tokens = Math.max(Number(error.details?.prompt_tokens), most + 1);
  return `prompt is too long: ${tokens} tokens > ${most} maximum`;
}
