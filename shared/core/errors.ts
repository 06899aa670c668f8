/** The one error class and the one table of codes. It does not know how an error looks on the wire. */

/** What each code means to a caller: the HTTP status it becomes, and whether the same call may succeed later. */
export const ERROR_CODES = {
  invalid_request: { status: 400, retryable: false },
  unknown_field: { status: 400, retryable: false },
  token_out_of_range: { status: 400, retryable: false },
  context_length_exceeded: { status: 400, retryable: false },
  unsupported: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  task_not_found: { status: 404, retryable: false },
  turn_not_found: { status: 404, retryable: false },
  model_not_found: { status: 404, retryable: false },
  method_not_allowed: { status: 405, retryable: false },
  task_exists: { status: 409, retryable: false },
  /** Own endpoints answer 409, agent endpoints 503 without `Retry-After`. */
  task_closed: { status: 409, retryable: false },
  conflict: { status: 409, retryable: false },
  body_too_large: { status: 413, retryable: false },
  vocabulary_mismatch: { status: 422, retryable: false },
  basis_mismatch: { status: 422, retryable: false },
  busy: { status: 429, retryable: true },
  budget_exceeded: { status: 429, retryable: false },
  /** The caller hung up; nobody reads this answer. 499 is the status nginx logs for it. */
  client_gone: { status: 499, retryable: false },
  internal: { status: 500, retryable: false },
  engine_failed: { status: 502, retryable: true },
  engine_inconsistent: { status: 502, retryable: true },
  teacher_failed: { status: 502, retryable: true },
  engine_unavailable: { status: 503, retryable: true },
  not_ready: { status: 503, retryable: true },
  engine_timeout: { status: 504, retryable: true },
} as const satisfies Record<string, { status: number; retryable: boolean }>;

/** A name in {@linkcode ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** What an error may carry beside its code and message. */
export interface VerbatimErrorOptions {
  /** Facts for the caller, safe to show: the field and its reason, lengths and limits. */
  details?: Record<string, unknown>;
  /** What led to it; goes to the log, never to the caller. */
  cause?: unknown;
  /** Seconds after which a retry is worth it; becomes `Retry-After`. */
  retryAfterS?: number;
  /** Overrides the code's own answer, where the place knows better. */
  retryable?: boolean;
}

/** An error whose code and message may be shown to the caller. Anything else that is thrown is `internal`. */
export class VerbatimError extends Error {
  /** The code, from the one table. */
  readonly code: ErrorCode;
  /** The HTTP status on Verbatim's own endpoints. */
  readonly status: number;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Facts for the caller. */
  readonly details: Record<string, unknown> | undefined;
  /** Seconds after which a retry is worth it. */
  readonly retryAfterS: number | undefined;

  /** Makes an error from its code and a sentence for the caller. */
  constructor(code: ErrorCode, message: string, options: VerbatimErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "VerbatimError";
    this.code = code;
    this.status = ERROR_CODES[code].status;
    this.retryable = options.retryable ?? ERROR_CODES[code].retryable;
    this.details = options.details;
    this.retryAfterS = options.retryAfterS;
  }
}
