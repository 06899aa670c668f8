/** Errors as OpenAI's API words them (chat completions and responses). */

import type { VerbatimError } from "../../shared/core/errors.ts";
import { agentStatus, type DialectErrors } from "./dialect.ts";

/** `{"error": {message, type, param, code}}`. */
export const openaiErrors: DialectErrors = {
  response: (error) => ({ status: agentStatus(error), body: openaiErrorBody(error) }),
};

/** The same, where the messages of a request are its `input`. */
export const responsesErrors: DialectErrors = {
  response(error) {
    const body = openaiErrorBody(error);
    const param = body.error.param?.replace(/^messages\b/, "input") ?? null;
    return { status: agentStatus(error), body: { error: { ...body.error, param } } };
  },
};

interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

/** An error's body. */
export function openaiErrorBody(error: VerbatimError): { readonly error: OpenaiError } {
  const field = error.details?.field;
  return {
    error: {
      message: error.message,
      type: typeOf(agentStatus(error)),
      param: typeof field === "string" ? field : error.code === "context_length_exceeded" ? "messages" : null,
      code: error.code,
    },
  };
}

/** The same in a stream that has begun. Clients then see the message alone: of what is worth another try it says the status. */
export function openaiStreamError(error: VerbatimError): { readonly error: OpenaiError } {
  const body = openaiErrorBody(error);
  return error.retryable ? { error: { ...body.error, message: `${agentStatus(error)} ${error.message}` } } : body;
}

function typeOf(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 404) return "not_found_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}
