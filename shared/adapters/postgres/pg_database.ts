/**
 * A Postgres database as the store uses it: single statements, each a transaction of its own, tried again while that may
 * help. It keeps nothing in a session, so a transaction pooler may stand between. It knows no tables.
 */

import postgres from "postgres";
import { VerbatimError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { AnswerTimeout, judgePgFailure } from "./pg_failure.ts";
import type { PgLimits } from "./pg_limits.ts";
import { PgSlots } from "./pg_slots.ts";

/** The driver's tag for statements. */
export type PgSql = postgres.Sql;

/** The same within a transaction. */
export type PgTransaction = postgres.TransactionSql;

export interface PgDatabaseOptions {
  readonly url: string;
  readonly limits: PgLimits;
  readonly clock: Clock;
  readonly logger: Logger | undefined;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Whether statements are prepared: a round trip less for each, but no transaction pooler may stand between. */
  readonly prepare: boolean;
}

/** What an attempt knows of those before it. */
export interface PgAttempt {
  readonly sql: PgSql;
  /** An earlier attempt was cut off: what it was to write may be written. */
  readonly mayHaveRun: boolean;
}

const FIRST_DELAY_MS = 5;
const LONGEST_DELAY_MS = 500;
/** Most attempts at one statement, where the clock does not end them before. */
const MOST_ATTEMPTS = 100;
/**
 * How long connections get to say goodbye. No statement is under way by then, but the driver waits in vain for a
 * connection that was cut off in the middle of one.
 */
const GOODBYE_S = 0.5;

export class PgDatabase {
  readonly #options: PgDatabaseOptions;
  readonly #slots: PgSlots;
  #pool: PgSql;
  #poolTakesSettings = true;

  /** Connects with the first statement. */
  constructor(options: PgDatabaseOptions) {
    const { clock, limits } = options;
    this.#options = options;
    this.#slots = new PgSlots(clock, { slots: limits.maxConnections, maxWaiting: limits.maxWaiting });
    this.#pool = this.#openPool();
  }

  /**
   * Runs one statement, again where it failed for a passing reason; `not_ready` after the deadline. A statement that was
   * cut off may have run, so it must be one that can be run twice, or look at `mayHaveRun`.
   */
  async run<T>(statement: (attempt: PgAttempt) => PromiseLike<T>): Promise<T> {
    const { clock, limits } = this.#options;
    const startedAtMs = clock.now();
    let mayHaveRun = false;
    for (let attempts = 1;; attempts++) {
      const leftMs = Math.max(0, startedAtMs + limits.deadlineMs - clock.now());
      try {
        return await this.#slots.run(leftMs, () => this.#once(statement, mayHaveRun));
      } catch (cause) {
        const failure = judgePgFailure(cause);
        if (failure.kind === "lasting") throw failure.error;
        if (failure.kind === "passing" && failure.mayHaveRun) mayHaveRun = true;
        const waitedMs = clock.now() - startedAtMs;
        if (waitedMs >= limits.deadlineMs || attempts === MOST_ATTEMPTS) throw givenUp(waitedMs, { mayHaveRun, cause });
        this.#options.logger?.debug("a statement is tried again", { attempts, error: String(cause) });
      }
      await clock.sleep(this.#delayMs(attempts));
    }
  }

  /** Closes all connections. The caller has let its statements end. */
  async close(): Promise<void> {
    await this.#pool.end({ timeout: GOODBYE_S });
  }

  async #once<T>(statement: (attempt: PgAttempt) => PromiseLike<T>, mayHaveRun: boolean): Promise<T> {
    const pool = this.#pool;
    const timer = new AbortController();
    try {
      return await Promise.race([statement({ sql: pool, mayHaveRun }), this.#lateAnswer(timer.signal)]);
    } catch (error) {
      this.#replaceWhatIsBroken(pool, error);
      throw error;
    } finally {
      timer.abort();
    }
  }

  async #lateAnswer(signal: AbortSignal): Promise<never> {
    const { clock, limits } = this.#options;
    await clock.sleep(limits.answerTimeoutMs, signal);
    throw new AnswerTimeout(`no answer came within ${limits.answerTimeoutMs} ms`);
  }

  /**
   * The driver gives up no single connection, so one that does not answer takes its pool with it. The other statements
   * of that pool are cut off, and tried again on the new one.
   */
  #replaceWhatIsBroken(pool: PgSql, error: unknown): void {
    if (pool !== this.#pool) return;
    const refused = judgePgFailure(error).kind === "settings_refused";
    const silent = error instanceof Error && "code" in error &&
      (error.code === "ANSWER_TIMEOUT" || error.code === "CONNECT_TIMEOUT");
    if (!refused && !silent) return;
    if (refused) this.#poolTakesSettings = false;
    this.#options.logger?.warn("connections to the database are opened anew", { error: String(error) });
    this.#pool = this.#openPool();
    pool.end({ timeout: 0 }).catch(() => {});
  }

  #openPool(): PgSql {
    const { url, limits, prepare } = this.#options;
    // Through a transaction pooler these would reach some connection of others; there, its own limits hold.
    const settings = this.#poolTakesSettings
      ? { statement_timeout: limits.statementTimeoutMs, lock_timeout: limits.lockTimeoutMs }
      : {};
    return openPgPool(url, { max: limits.maxConnections, limits, prepare, settings });
  }

  /** Exponential, half of it random. */
  #delayMs(attempts: number): number {
    const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempts, 16));
    return longest / 2 + this.#options.random() * longest / 2;
  }
}

/** The driver with everything said that it would else look up in the environment. An unreadable URL is `not_ready`. */
export function openPgPool(
  url: string,
  options: {
    readonly max: number;
    readonly limits: PgLimits;
    readonly prepare: boolean;
    readonly settings: Partial<postgres.ConnectionParameters>;
  },
): PgSql {
  const { max, limits, prepare, settings } = options;
  try {
    if (!/^postgres(ql)?:\/\//.test(url)) throw new TypeError("another scheme");
    return postgres(url, {
      max,
      prepare,
      connect_timeout: limits.connectTimeoutMs / 1000,
      idle_timeout: limits.idleTimeoutMs / 1000,
      // Waiting between attempts is this module's business.
      backoff: () => 0,
      fetch_types: false,
      keep_alive: 30,
      connection: { application_name: "verbatim", ...settings },
      onnotice() {},
    });
  } catch {
    // Neither the URL nor the error that repeats it is shown: it holds a password.
    throw new VerbatimError(
      "not_ready",
      "The database URL can't be read; it must be postgres://user:password@host/name.",
    );
  }
}

function givenUp(waitedMs: number, options: { mayHaveRun: boolean; cause: unknown }): VerbatimError {
  const { mayHaveRun, cause } = options;
  const doubt = mayHaveRun ? " What it was asked last may have happened." : "";
  const message = `The store's database gave no answer for ${Math.round(waitedMs)} ms; try again later.${doubt}`;
  return new VerbatimError("not_ready", message, { retryAfterS: 1, cause });
}
