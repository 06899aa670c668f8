import assert from "node:assert/strict";
import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { createListLogger } from "../../tests/fixtures/list_logger.ts";
import { ERROR_CODES, type ErrorCode, VerbatimError } from "../core/errors.ts";
import { errorBody, errorResponse, logFailure, retryHeaders, toVerbatimError } from "./error_response.ts";

const codes = Object.keys(ERROR_CODES).filter((code): code is ErrorCode => code in ERROR_CODES);

Deno.test("toVerbatimError hides whatever is not a VerbatimError behind one sentence", () => {
  const known = new VerbatimError("busy", "Later");
  assert.equal(toVerbatimError(known), known);
  assert.equal(toVerbatimError(new HTTPException(404)).code, "not_found");
  for (const thrown of [new Error("secret"), new HTTPException(500, { message: "secret" }), "secret", undefined]) {
    const error = toVerbatimError(thrown);
    assert.equal(error.code, "internal");
    assert.equal(error.cause, thrown);
    assert.ok(!JSON.stringify(errorBody(error)).includes("secret"));
  }
});

Deno.test("errorResponse answers every code with its status and the one shape", async () => {
  const app = new Hono();
  app.get("/:code", (context) => {
    const code = codes.find((known) => known === context.req.param("code"))!;
    return errorResponse(context, new VerbatimError(code, "A sentence", { details: { field: "x" }, cause: "secret" }));
  });
  for (const code of codes) {
    const response = await app.request(`/${code}`);
    assert.equal(response.status, ERROR_CODES[code].status);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(response.headers.get("retry-after"), null);
    assert.deepEqual(await response.json(), {
      error: { code, message: "A sentence", retryable: ERROR_CODES[code].retryable, details: { field: "x" } },
    });
  }
});

Deno.test("errorBody leaves details out where there are none", () => {
  assert.deepEqual(Object.keys(Object(errorBody(new VerbatimError("busy", "Later")).error)), [
    "code",
    "message",
    "retryable",
  ]);
});

Deno.test("retryHeaders gives whole seconds, at least one, where waiting helps", () => {
  const after = (retryAfterS: number) => retryHeaders(new VerbatimError("busy", "Later", { retryAfterS }));
  assert.deepEqual(retryHeaders(new VerbatimError("task_closed", "Closed")), {});
  assert.deepEqual([0, 0.2, 1, 1.2].map(after).map((headers) => headers["retry-after"]), ["1", "1", "1", "2"]);
});

Deno.test("logFailure logs by whose fault it is, with the causes that the caller does not see", () => {
  const logger = createListLogger();
  const cause = new Error("outer", { cause: new Error("inner") });
  for (const code of ["internal", "engine_failed", "invalid_request", "client_gone"] as const) {
    logFailure(logger, new VerbatimError(code, "A sentence", { cause }), { request_id: "req_1" });
  }
  assert.deepEqual(logger.lines.map(({ level }) => level), ["error", "warn", "info", "info"]);
  for (const { fields } of logger.lines) {
    assert.equal(fields.request_id, "req_1");
    assert.match(String(fields.cause), /outer[^]+<- Error: inner/);
  }
});
