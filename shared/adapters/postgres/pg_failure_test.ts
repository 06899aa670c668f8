import assert from "node:assert/strict";
import { VerbatimError } from "../../core/errors.ts";
import { AnswerTimeout, judgePgFailure } from "./pg_failure.ts";

function coded(code: string, more: { severity?: string; message?: string } = {}): Error {
  const { message = "as it is", ...facts } = more;
  return Object.assign(new Error(message), { code, ...facts });
}

Deno.test("judgePgFailure tries again what did not happen, or was undone", () => {
  const codes = [
    "ECONNREFUSED",
    "CONNECT_TIMEOUT",
    "40001",
    "40P01",
    "55P03",
    "57014",
    "53300",
    "53100",
    "25006",
    "57P03",
  ];
  for (const code of codes) {
    assert.deepEqual(judgePgFailure(coded(code, { severity: "ERROR" })), { kind: "passing", mayHaveRun: false }, code);
  }
});

Deno.test("judgePgFailure tells what may have happened", () => {
  const passing = { kind: "passing", mayHaveRun: true };
  for (const code of ["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "ECONNRESET", "EPIPE"]) {
    assert.deepEqual(judgePgFailure(coded(code)), passing, code);
  }
  for (const code of ["57P01", "57P02", "XX000", "08P01"]) {
    assert.deepEqual(judgePgFailure(coded(code, { severity: "FATAL" })), passing, code);
  }
  assert.deepEqual(judgePgFailure(new AnswerTimeout("late")), passing);
});

Deno.test("judgePgFailure knows a pooler that takes no settings", () => {
  const refusal = coded("08P01", { severity: "FATAL", message: "unsupported startup parameter: lock_timeout" });
  assert.deepEqual(judgePgFailure(refusal), { kind: "settings_refused" });
});

Deno.test("judgePgFailure gives up what stays as it is", () => {
  const cases: [Error, string, RegExp][] = [
    [coded("28P01", { severity: "FATAL" }), "not_ready", /refuses the store \(28P01\)/],
    [coded("3D000", { severity: "FATAL" }), "not_ready", /refuses the store/],
    [coded("42501", { severity: "ERROR" }), "not_ready", /refuses the store/],
    [coded("42P01", { severity: "ERROR" }), "not_ready", /apply the migrations/],
    [coded("23505", { severity: "ERROR" }), "internal", /failed \(23505\)/],
    [new TypeError("no code"), "internal", /no code/],
  ];
  for (const [given, code, message] of cases) {
    const failure = judgePgFailure(given);
    assert.ok(failure.kind === "lasting");
    assert.equal(failure.error.code, code);
    assert.match(failure.error.message, message);
    assert.equal(failure.error.cause, given);
  }
  const own = new VerbatimError("conflict", "ours");
  assert.deepEqual(judgePgFailure(own), { kind: "lasting", error: own });
});
