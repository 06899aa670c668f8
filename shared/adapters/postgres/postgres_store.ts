/** Tasks in a Postgres database (POSTGRES.md). It does not know what its records mean. */

import { VerbatimError } from "../../core/errors.ts";
import type { CallLease, TaskEvent, TaskRecord } from "../../core/task.ts";
import type { Turn } from "../../core/turn.ts";
import type { TurnScores } from "../../core/turn_scores.ts";
import type { BlobOwner, BlobRef } from "../../ports/blob_store.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type {
  AppendOutcome,
  AppendTurn,
  CreateTaskOutcome,
  ListTasks,
  StagedTurn,
  TaskStore,
  VersionedTask,
} from "../../ports/task_store.ts";
import { getPgBlob, putPgBlob } from "./pg_blobs.ts";
import type { PgContext } from "./pg_context.ts";
import { PgDatabase } from "./pg_database.ts";
import { listPgCalls, listPgEvents, putPgCall, putPgEvents, removePgCall } from "./pg_journal.ts";
import { DEFAULT_PG_LIMITS, type PgLimits } from "./pg_limits.ts";
import { PgOrder } from "./pg_order.ts";
import { entombPgTask, removePgRemains, sweepPg } from "./pg_removal.ts";
import { listPgTeachers, readPgScores, savePgScores } from "./pg_scores.ts";
import { createPgTask, getPgTask, getPgTaskByKey, listPgTasks, updatePgTask } from "./pg_tasks.ts";
import { appendPgTurn, getPgRepeat, readPgTurns, stagePgTurn } from "./pg_turns.ts";

export interface PostgresStoreOptions extends Partial<PgLimits> {
  /** `postgres://user:password@host:port/database`, with `?sslmode=` as libpq has it. */
  readonly url: string;
  /** For waiting and deadlines; no record depends on it. */
  readonly clock: Clock;
  readonly logger?: Logger;
  /** Unpredictable bytes for names and for the secret; the host's by default. */
  readonly randomBytes?: (length: number) => Uint8Array;
  /**
   * Whether statements are prepared, which saves a round trip for each. False by default: a transaction pooler takes
   * none.
   */
  readonly prepare?: boolean;
}

const SECRET_BYTES = 32;

/**
 * A store in a database that has the tables of supabase/migrations. It connects with the first call. Statements that fail
 * for a passing reason are tried again for `deadlineMs`, then `not_ready`. An unreadable URL is `not_ready` at once.
 */
export function openPostgresStore(options: PostgresStoreOptions): TaskStore {
  return new PostgresStore(options);
}

class PostgresStore implements TaskStore {
  readonly #context: PgContext;
  readonly #logger: Logger | undefined;
  readonly #leases = new PgOrder();
  readonly #active = new Set<Promise<void>>();
  #secret: Uint8Array | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: PostgresStoreOptions) {
    const { url, clock, logger, randomBytes = hostRandomBytes, prepare = false, ...given } = options;
    const limits = { ...DEFAULT_PG_LIMITS, ...given };
    const random = () => randomBytes(1)[0]! / 256;
    const database = new PgDatabase({ url, limits, clock, logger, random, prepare });
    this.#context = { database, limits, randomBytes };
    this.#logger = logger;
  }

  rootSecret(): Promise<Uint8Array> {
    return this.#run(async (context) => {
      this.#secret ??= await readSecret(context);
      return this.#secret.slice();
    });
  }

  createTask(task: TaskRecord, options: { nowMs: number; idempotencyKey?: string }): Promise<CreateTaskOutcome> {
    return this.#run(async (context) => {
      const { outcome, removedUids } = await createPgTask(context, task, options);
      for (const uid of removedUids) this.#remove(uid);
      return outcome;
    });
  }

  getTask(taskId: string): Promise<VersionedTask | null> {
    return this.#run((context) => getPgTask(context, taskId));
  }

  getTaskByKey(keyHash: string): Promise<VersionedTask | null> {
    return this.#run((context) => getPgTaskByKey(context, keyHash));
  }

  updateTask(next: TaskRecord, version: string): Promise<string | null> {
    return this.#run((context) => updatePgTask(context, next, version));
  }

  listTasks(query: ListTasks): Promise<{ tasks: TaskRecord[]; cursor: string | null }> {
    return this.#run((context) => listPgTasks(context, query));
  }

  dropTask(dropped: TaskRecord, version: string): Promise<boolean> {
    return this.#run(async (context) => {
      if (!await entombPgTask(context, dropped, version)) return false;
      await this.#remove(dropped.uid);
      return true;
    });
  }

  stageTurn(_task: TaskRecord, turn: Turn): Promise<StagedTurn> {
    return this.#run((context) => Promise.resolve(stagePgTurn(context, turn)));
  }

  appendTurn(append: AppendTurn): Promise<AppendOutcome> {
    const lease = leaseName(append.next.uid, append.callId);
    return this.#run((context) => this.#leases.run(lease, () => appendPgTurn(context, append)));
  }

  readTurns(task: TaskRecord, from: number, to: number): Promise<Turn[]> {
    return this.#run((context) => readPgTurns(context, task, { from, to }));
  }

  getRepeat(uid: string, digest: string): Promise<number | null> {
    return this.#run((context) => getPgRepeat(context, uid, digest));
  }

  saveScores(
    task: TaskRecord,
    given: { readonly teacher: string; readonly scores: readonly TurnScores[] },
  ): Promise<boolean> {
    return this.#run((context) => savePgScores(context, task, given));
  }

  readScores(task: TaskRecord, teacher: string): Promise<TurnScores[]> {
    return this.#run((context) => readPgScores(context, task, teacher));
  }

  listTeachers(task: TaskRecord): Promise<string[]> {
    return this.#run((context) => listPgTeachers(context, task));
  }

  putBlob(owner: BlobOwner, bytes: Uint8Array): Promise<BlobRef> {
    return this.#run((context) => putPgBlob(context, owner, bytes));
  }

  getBlob(owner: BlobOwner, blob: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
    return this.#run((context) => getPgBlob(context, owner, blob));
  }

  putCall(task: TaskRecord, lease: CallLease): Promise<void> {
    const name = leaseName(task.uid, lease.callId);
    return this.#run((context) => this.#leases.run(name, () => putPgCall(context, task, lease)));
  }

  removeCall(uid: string, callId: string): Promise<void> {
    const name = leaseName(uid, callId);
    return this.#run((context) => this.#leases.run(name, () => removePgCall(context, uid, callId)));
  }

  listCalls(uid: string): Promise<CallLease[]> {
    return this.#run((context) => listPgCalls(context, uid));
  }

  putEvents(task: TaskRecord, events: readonly TaskEvent[]): Promise<void> {
    return this.#run((context) => putPgEvents(context, task, events));
  }

  listEvents(uid: string): Promise<TaskEvent[]> {
    return this.#run((context) => listPgEvents(context, uid));
  }

  sweep(nowMs: number): Promise<number> {
    return this.#run((context) => sweepPg(context, nowMs));
  }

  async flush(): Promise<void> {
    await Promise.all(this.#active);
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  /** Every call goes through here, so that `flush` and `close` wait for all that began. */
  async #run<T>(work: (context: PgContext) => Promise<T>): Promise<T> {
    if (this.#closing !== null) {
      throw new VerbatimError("not_ready", "The store is closed; this process is going down.", { retryAfterS: 1 });
    }
    return await this.#track(work(this.#context));
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    const ended = work.then(() => {}, () => {});
    this.#active.add(ended);
    try {
      return await work;
    } finally {
      this.#active.delete(ended);
    }
  }

  /** What a task leaves behind. It is out of reach already, so a failure is logged, and `sweep` goes on from the mark. */
  #remove(uid: string): Promise<void> {
    return this.#track(
      removePgRemains(this.#context, uid).catch((error) => {
        this.#logger?.warn("a task's remains could not be removed yet", { uid, error: String(error) });
      }),
    );
  }

  async #drain(): Promise<void> {
    while (this.#active.size > 0) await Promise.all(this.#active);
    await this.#context.database.close();
  }
}

/** The writes of one lease keep their order, the commit that ends it included. */
function leaseName(uid: string, callId: string): string {
  return `${uid} ${callId}`;
}

/** The first process to write it wins; all read the same one. */
async function readSecret(context: PgContext): Promise<Uint8Array> {
  const secret = context.randomBytes(SECRET_BYTES);
  await context.database.run(({ sql }) =>
    sql`insert into verbatim.secret (value) values (${secret}) on conflict do nothing`
  );
  const [row] = await context.database.run(({ sql }) =>
    sql<{ value: Uint8Array }[]>`select value from verbatim.secret`
  );
  if (row === undefined) throw new VerbatimError("internal", "The store's secret was written and is not there.");
  return Uint8Array.from(row.value);
}

function hostRandomBytes(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}
