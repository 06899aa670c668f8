/** What an error of the database means for the statement that met it. It knows no statements. */

import { VerbatimError } from "../../core/errors.ts";

export type PgFailure =
  /** The same statement may be tried again. `mayHaveRun`: nobody can tell whether it took effect. */
  | { readonly kind: "passing"; readonly mayHaveRun: boolean }
  /** A pooler stands before the database, and takes no settings at the start of a connection. */
  | { readonly kind: "settings_refused" }
  | { readonly kind: "lasting"; readonly error: VerbatimError };

/** An answer that did not come in time. */
export class AnswerTimeout extends Error {
  override readonly name = "AnswerTimeout";
  readonly code = "ANSWER_TIMEOUT";
}

/** Nothing of the statement happened: no connection stood, or the server undid it. */
const NOT_RUN = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "CONNECT_TIMEOUT",
  "CONNECTION_ENDED",
  /** cannot_connect_now: it starts, or goes down. */
  "57P03",
  /** serialization_failure, deadlock_detected, lock_not_available, query_canceled. */
  "40001",
  "40P01",
  "55P03",
  "57014",
  /** read_only_sql_transaction: the server was the main one until now. */
  "25006",
]);
/** The connection ended under the statement. */
const CUT_OFF = new Set([
  "ANSWER_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
]);
/** insufficient_resources: a full disk or memory, too many connections. */
const RESOURCES = /^53/;
/** invalid_authorization, invalid_catalog_name, insufficient_privilege. */
const REFUSED = /^(28...|3D000|42501)$/;
/** undefined_table, undefined_column, invalid_schema_name. */
const OTHER_TABLES = /^(42P01|42703|3F000)$/;

/** Judges what a statement was rejected with. */
export function judgePgFailure(error: unknown): PgFailure {
  if (error instanceof VerbatimError) return { kind: "lasting", error };
  const { code, severity, message } = factsOf(error);
  if (/unsupported startup parameter/i.test(message)) return { kind: "settings_refused" };
  if (NOT_RUN.has(code) || RESOURCES.test(code)) return { kind: "passing", mayHaveRun: false };
  if (CUT_OFF.has(code)) return { kind: "passing", mayHaveRun: true };
  if (REFUSED.test(code)) {
    return lasting(
      "not_ready",
      `The database refuses the store (${code}); check its URL, its user and its rights.`,
      error,
    );
  }
  if (OTHER_TABLES.test(code)) {
    const wanted = "The database has not the tables that this version needs; apply the migrations.";
    return lasting("not_ready", wanted, error);
  }
  // A fatal error ends the connection: the server goes down, starts, recovers, or has no room.
  if (severity === "FATAL" || severity === "PANIC") return { kind: "passing", mayHaveRun: true };
  return lasting("internal", `The database failed (${code || "no code"}).`, error);
}

function lasting(code: "not_ready" | "internal", message: string, cause: unknown): PgFailure {
  return { kind: "lasting", error: new VerbatimError(code, message, { cause }) };
}

/** The driver's errors, the server's and the host's all carry a code; the server's a severity besides. */
function factsOf(error: unknown): { code: string; severity: string; message: string } {
  if (!(error instanceof Error)) return { code: "", severity: "", message: "" };
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const severity = "severity" in error && typeof error.severity === "string" ? error.severity : "";
  return { code, severity, message: error.message };
}
