/** Tasks in Deno KV: a file, memory, or a KV Connect server (STORAGE.md). It does not know what its records mean. */

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
import { getKvBlob, putKvBlob } from "./kv_blobs.ts";
import type { BusyRetry } from "./kv_busy.ts";
import { KvCommitQueue } from "./kv_commit_queue.ts";
import { type KvContext, readEntry } from "./kv_context.ts";
import { listKvCalls, listKvEvents, putKvCall, putKvEvents, removeKvCall } from "./kv_journal.ts";
import { kvKeys } from "./kv_keys.ts";
import { DEFAULT_KV_LIMITS, type KvLimits } from "./kv_limits.ts";
import { entombKvTask, removeKvRemains, sweepKv } from "./kv_removal.ts";
import { listKvTeachers, readKvScores, saveKvScores } from "./kv_scores.ts";
import { createKvTask, getKvTask, getKvTaskByKey, listKvTasks, updateKvTask } from "./kv_tasks.ts";
import { appendKvTurn, getKvRepeat, readKvTurns, stageKvTurn } from "./kv_turns.ts";

export interface DenoKvStoreOptions extends Partial<KvLimits> {
  /** An open database. The store closes it. */
  readonly kv: Deno.Kv;
  readonly clock: Clock;
  readonly logger?: Logger;
  /** Unpredictable bytes for names and for the secret; the host's by default. */
  readonly randomBytes?: (length: number) => Uint8Array;
}

const SECRET_BYTES = 32;

/** A store over an open KV database. Writes that find the database locked are tried again for `busyDeadlineMs`, then `not_ready`. */
export function openDenoKvStore(options: DenoKvStoreOptions): TaskStore {
  return new DenoKvStore(options);
}

class DenoKvStore implements TaskStore {
  readonly #context: KvContext;
  readonly #knownKeys = new Map<string, string>();
  readonly #active = new Set<Promise<void>>();
  #secret: Uint8Array | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: DenoKvStoreOptions) {
    const { kv, clock, logger, randomBytes = hostRandomBytes, ...given } = options;
    const limits = { ...DEFAULT_KV_LIMITS, ...given };
    const random = () => randomBytes(1)[0]! / 256;
    const retry: BusyRetry = { clock, random, busyDeadlineMs: limits.busyDeadlineMs };
    const queue = new KvCommitQueue(kv, { limits, retry, logger });
    this.#context = { kv, queue, retry, limits, clock, logger, randomBytes };
  }

  rootSecret(): Promise<Uint8Array> {
    return this.#run(async (context) => {
      this.#secret ??= await readSecret(context);
      return this.#secret.slice();
    });
  }

  createTask(task: TaskRecord, options: { nowMs: number; idempotencyKey?: string }): Promise<CreateTaskOutcome> {
    return this.#run(async (context) => {
      const { outcome, replacedUid } = await createKvTask(context, task, options);
      if (replacedUid !== null) this.#remove(replacedUid);
      return outcome;
    });
  }

  getTask(taskId: string): Promise<VersionedTask | null> {
    return this.#run((context) => getKvTask(context, taskId));
  }

  getTaskByKey(keyHash: string): Promise<VersionedTask | null> {
    return this.#run((context) => getKvTaskByKey(context, keyHash, this.#knownKeys));
  }

  updateTask(next: TaskRecord, version: string): Promise<string | null> {
    return this.#run((context) => updateKvTask(context, next, version));
  }

  listTasks(query: ListTasks): Promise<{ tasks: TaskRecord[]; cursor: string | null }> {
    return this.#run((context) => listKvTasks(context, query));
  }

  dropTask(dropped: TaskRecord, version: string): Promise<boolean> {
    return this.#run(async (context) => {
      if (!await entombKvTask(context, dropped, version)) return false;
      await this.#remove(dropped.uid);
      return true;
    });
  }

  stageTurn(task: TaskRecord, turn: Turn): Promise<StagedTurn> {
    return this.#run((context) => stageKvTurn(context, task, turn));
  }

  appendTurn(append: AppendTurn): Promise<AppendOutcome> {
    return this.#run((context) => appendKvTurn(context, append));
  }

  readTurns(task: TaskRecord, from: number, to: number): Promise<Turn[]> {
    return this.#run((context) => readKvTurns(context, task, { from, to }));
  }

  getRepeat(uid: string, digest: string): Promise<number | null> {
    return this.#run((context) => getKvRepeat(context, uid, digest));
  }

  saveScores(
    task: TaskRecord,
    given: { readonly teacher: string; readonly scores: readonly TurnScores[] },
  ): Promise<boolean> {
    return this.#run((context) => saveKvScores(context, task, given));
  }

  readScores(task: TaskRecord, teacher: string): Promise<TurnScores[]> {
    return this.#run((context) => readKvScores(context, task, teacher));
  }

  listTeachers(task: TaskRecord): Promise<string[]> {
    return this.#run((context) => listKvTeachers(context, task));
  }

  putBlob(owner: BlobOwner, bytes: Uint8Array): Promise<BlobRef> {
    return this.#run((context) => putKvBlob(context, owner, bytes));
  }

  getBlob(owner: BlobOwner, blob: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
    return this.#run((context) => getKvBlob(context, owner, blob));
  }

  putCall(task: TaskRecord, lease: CallLease): Promise<void> {
    return this.#run((context) => putKvCall(context, task, lease));
  }

  removeCall(uid: string, callId: string): Promise<void> {
    return this.#run((context) => removeKvCall(context, uid, callId));
  }

  listCalls(uid: string): Promise<CallLease[]> {
    return this.#run((context) => listKvCalls(context, uid));
  }

  putEvents(
    task: TaskRecord,
    events: readonly TaskEvent[],
    options: { readonly mayLinger?: boolean } = {},
  ): Promise<void> {
    return this.#run((context) => putKvEvents(context, task, { events, mayLinger: options.mayLinger ?? false }));
  }

  listEvents(uid: string): Promise<TaskEvent[]> {
    return this.#run((context) => listKvEvents(context, uid));
  }

  sweep(nowMs: number): Promise<number> {
    return this.#run((context) => sweepKv(context, nowMs));
  }

  async flush(): Promise<void> {
    await Promise.all(this.#active);
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  /** Every call goes through here, so that `flush` and `close` wait for all that began. */
  async #run<T>(work: (context: KvContext) => Promise<T>): Promise<T> {
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
      removeKvRemains(this.#context, uid).catch((error) => {
        this.#context.logger?.warn("a task's remains could not be removed yet", { uid, error: String(error) });
      }),
    );
  }

  async #drain(): Promise<void> {
    while (this.#active.size > 0) await Promise.all(this.#active);
    this.#context.kv.close();
  }
}

/** The first process to write it wins; all read the same one. */
async function readSecret(context: KvContext): Promise<Uint8Array> {
  const key = kvKeys.secret();
  const { value } = await readEntry(context, key);
  if (value !== null) return value;
  const secret = context.randomBytes(SECRET_BYTES);
  const version = await context.queue.commit({
    checks: [{ key, versionstamp: null }],
    sets: [{ key, value: secret, expireInMs: undefined }],
    deletes: [],
    claims: ["secret"],
  });
  if (version !== null) return secret;
  const written = await readEntry(context, key);
  if (written.value === null) throw new VerbatimError("internal", "The store's secret was written and is not there.");
  return written.value;
}

function hostRandomBytes(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}
