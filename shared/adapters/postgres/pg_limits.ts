/** How much the Postgres store asks of a database, and how patient it is. It knows no tables. */

/** Limits of the store. */
export interface PgLimits {
  /** Most connections, and so most statements under way at once; the others wait. */
  readonly maxConnections: number;
  /** Most statements waiting; beyond it one is refused at once. */
  readonly maxWaiting: number;
  /** How long a call is tried again, or waits for a connection, before it ends as `not_ready`. */
  readonly deadlineMs: number;
  /** How long a connection may take to stand. */
  readonly connectTimeoutMs: number;
  /** How long the server lets a statement wait for a lock. */
  readonly lockTimeoutMs: number;
  /** How long the server lets a statement run. */
  readonly statementTimeoutMs: number;
  /** How long an answer may take; then its connection counts as lost. Longer than the server's own limit. */
  readonly answerTimeoutMs: number;
  /** How long a connection without work stays open. */
  readonly idleTimeoutMs: number;
  /** Most bytes of a task record, a lease or an event. */
  readonly maxRecordBytes: number;
  /** Most bytes of a turn's bulk. */
  readonly maxBulkBytes: number;
}

export const DEFAULT_PG_LIMITS: PgLimits = {
  maxConnections: 10,
  maxWaiting: 10_000,
  deadlineMs: 10_000,
  connectTimeoutMs: 5_000,
  lockTimeoutMs: 5_000,
  statementTimeoutMs: 15_000,
  answerTimeoutMs: 20_000,
  idleTimeoutMs: 30_000,
  maxRecordBytes: 1_000_000,
  maxBulkBytes: 134_217_728,
};

/** Room kept for a task record to grow by an append: what is created or updated must be smaller by this much. */
export const RECORD_ROOM_BYTES = 1_000;
