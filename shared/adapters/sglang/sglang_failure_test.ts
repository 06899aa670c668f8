import assert from "node:assert/strict";
import { type EngineFailure, verbatimErrorOf } from "./engine_failure.ts";
import { failureOfAbort, failureOfEvent, failureOfStatus } from "./sglang_failure.ts";

/** What becomes of a failure: its code, whether the gateway may try again, whether the caller may, and what the engine said. */
function gist(failure: EngineFailure): [code: string, again: boolean, retryable: boolean, message: unknown] {
  const error = verbatimErrorOf(failure);
  return [error.code, failure.retryable, error.retryable, error.details?.engine_message];
}

Deno.test("failureOfStatus tries again what is busy, down or late, and nothing else", () => {
  for (const status of [408, 429, 502, 503, 504]) {
    assert.deepEqual(gist(failureOfStatus(status, "m", null)), ["engine_unavailable", true, true, "m"]);
  }
  assert.deepEqual(gist(failureOfStatus(500, "m", null)), ["engine_failed", false, true, "m"]);
  for (const status of [400, 401, 403, 404, 422]) {
    assert.deepEqual(gist(failureOfStatus(status, "m", null)), ["engine_failed", false, false, "m"]);
  }
});

Deno.test("failureOfStatus tries again what a router says of a worker that it lost, or of having none", () => {
  for (const code of ["call_upstream_request_error", "call_upstream_connection_failed", "read_response_body_failed"]) {
    const body = JSON.stringify({ error: { type: "Internal Server Error", code, message: "m" } });
    assert.deepEqual(gist(failureOfStatus(500, body, null)), ["engine_unavailable", true, true, "m"]);
    assert.deepEqual(gist(failureOfStatus(400, body, null)), ["engine_failed", false, false, "m"]);
  }
  for (const code of [500, null, "internal"]) {
    const body = JSON.stringify({ error: { code, message: "m" } });
    assert.deepEqual(gist(failureOfStatus(500, body, null)), ["engine_failed", false, true, "m"]);
  }
  const none = "No worker available for model 'unknown'";
  const body = JSON.stringify({ error: { code: "model_not_found", message: none } });
  assert.deepEqual(gist(failureOfStatus(404, body, null)), ["engine_unavailable", true, true, none]);
});

Deno.test("failureOfStatus finds the message in every wrapping", () => {
  const bodies: [string, string][] = [
    ['{"error":{"message":"nested"}}', "nested"],
    ['{"error":"Unauthorized"}', "Unauthorized"],
    ['{"object":"error","message":"flat","type":"503","param":null,"code":503}', "flat"],
    ["Internal Server Error", "Internal Server Error"],
    ["", "status 500 with no message"],
    ["  \n", "status 500 with no message"],
    ['{"detail":"x"}', '{"detail":"x"}'],
    ["[1]", "[1]"],
    ['"text"', '"text"'],
  ];
  for (const [body, message] of bodies) assert.equal(gist(failureOfStatus(500, body, null))[3], message);
  assert.equal(String(gist(failureOfStatus(500, "x".repeat(10_000), null))[3]).length, 500);
});

Deno.test("failureOfStatus waits as long as the engine asks, and tells the caller so", () => {
  function waits(retryAfter: string | null): [number | null, number | undefined] {
    const failure = failureOfStatus(503, "", retryAfter);
    return [failure.retryAfterMs, verbatimErrorOf(failure).retryAfterS];
  }
  assert.deepEqual(waits("7"), [7000, 7]);
  assert.deepEqual(waits(" 0 "), [0, 0]);
  for (const none of [null, "", "soon", "-1", "1e3", "Infinity", "Wed, 21 Oct 2026 07:28:00 GMT"]) {
    assert.deepEqual(waits(none), [null, 1]);
  }
});

Deno.test("failureOfEvent reads an error in a stream as it would the status it names", () => {
  const invalid = { message: "m", type: "invalid_request_error", code: 400, retryable: false };
  assert.deepEqual(gist(failureOfEvent(invalid)), ["engine_failed", false, false, "m"]);
  assert.deepEqual(gist(failureOfEvent({ message: "m", code: 503 })), ["engine_unavailable", true, true, "m"]);
  assert.deepEqual(gist(failureOfEvent({ message: "m", code: "bad" })), ["engine_failed", false, true, "m"]);
  assert.deepEqual(gist(failureOfEvent("m")), ["engine_failed", false, true, "m"]);
});

Deno.test("failureOfStatus finds the worker that a router lost behind a plain 500", () => {
  const lost = (code: unknown) => JSON.stringify({ error: { type: "Internal Server Error", code, message: "m" } });
  for (const code of ["call_upstream_request_error", "call_upstream_connection_failed"]) {
    const failure = failureOfStatus(500, lost(code), null);
    assert.deepEqual([failure.kind, ...gist(failure)], ["unreachable", "engine_unavailable", true, true, "m"]);
    assert.equal(failure.isOver, false, "the worker may have taken it");
  }
  for (const code of [500, "500", null, "other"]) {
    assert.equal(failureOfStatus(500, lost(code), null).kind, "failed");
  }
});

Deno.test("failureOfAbort is what its status says, where it has one", () => {
  const full = { type: "abort", message: "The request queue is full.", status_code: 503, err_type: "503" };
  assert.deepEqual(gist(failureOfAbort(full)), ["engine_unavailable", true, true, full.message]);
  assert.deepEqual(gist(failureOfAbort({ ...full, status_code: 400 })), ["engine_failed", false, false, full.message]);
});

Deno.test("failureOfAbort of a user's abort, running or queued, may be tried again: nothing was sampled", () => {
  const running = { type: "abort", message: "Aborted", status_code: null, err_type: null };
  const queued = { type: "abort", message: "Abort in waiting queue" };
  for (const finish of [running, queued]) {
    assert.deepEqual(gist(failureOfAbort(finish)), ["engine_failed", true, true, finish.message]);
    assert.equal(verbatimErrorOf(failureOfAbort(finish)).details?.aborted, true);
  }
  assert.equal(gist(failureOfAbort({ type: "abort" }))[3], "Aborted");
});
