import assert from "node:assert/strict";
import { ERROR_CODES, type ErrorCode, VerbatimError } from "./errors.ts";

/** The contract's table: what a caller may meet, and at which status. */
const CONTRACT: Record<number, readonly ErrorCode[]> = {
  400: ["invalid_request", "unknown_field", "token_out_of_range", "context_length_exceeded", "unsupported"],
  401: ["unauthorized"],
  403: ["forbidden"],
  404: ["task_not_found", "turn_not_found", "model_not_found"],
  409: ["task_exists", "task_closed", "conflict"],
  413: ["body_too_large"],
  422: ["vocabulary_mismatch", "basis_mismatch"],
  429: ["busy", "budget_exceeded"],
  502: ["engine_failed", "engine_inconsistent", "teacher_failed"],
  503: ["engine_unavailable", "not_ready"],
  504: ["engine_timeout"],
};

const codes = Object.keys(ERROR_CODES).filter((code): code is ErrorCode => code in ERROR_CODES);

Deno.test("ERROR_CODES has the contract's codes at the contract's statuses", () => {
  for (const [status, expected] of Object.entries(CONTRACT)) {
    for (const code of expected) assert.equal(ERROR_CODES[code].status, Number(status), code);
  }
});

Deno.test("ERROR_CODES gives every code an error status, and a retry only where another try may succeed", () => {
  for (const code of codes) {
    const { status, retryable } = ERROR_CODES[code];
    assert.ok(Number.isInteger(status) && status >= 400 && status < 600, code);
    if (retryable) assert.ok(status === 429 || status >= 502, code);
    if (status >= 502) assert.ok(retryable, code);
  }
  assert.equal(ERROR_CODES.budget_exceeded.retryable, false);
  assert.equal(ERROR_CODES.internal.retryable, false);
});

Deno.test("VerbatimError takes status and retryability from the table", () => {
  for (const code of codes) {
    const error = new VerbatimError(code, "A sentence");
    assert.deepEqual(
      { code: error.code, status: error.status, retryable: error.retryable, message: error.message, name: error.name },
      { code, ...ERROR_CODES[code], message: "A sentence", name: "VerbatimError" },
    );
    assert.ok(error instanceof Error);
    assert.equal(error.details, undefined);
    assert.equal(error.retryAfterS, undefined);
    assert.ok(!("cause" in error));
  }
});

Deno.test("VerbatimError carries facts, cause and wait, and lets the place overrule the table", () => {
  const cause = new Error("deeper");
  const error = new VerbatimError("engine_failed", "No", {
    details: { field: "a" },
    cause,
    retryAfterS: 3,
    retryable: false,
  });
  assert.deepEqual(error.details, { field: "a" });
  assert.equal(error.cause, cause);
  assert.equal(error.retryAfterS, 3);
  assert.equal(error.retryable, false);
  assert.equal(error.status, 502);
});
