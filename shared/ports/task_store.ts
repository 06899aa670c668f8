/** Where tasks, turns, leases and events are kept. Adapters: Deno KV, memory, (Postgres). One contract suite runs on all. */

import type { CallLease, TaskEvent, TaskRecord } from "../core/task.ts";
import type { Turn } from "../core/turn.ts";
import type { TurnScores } from "../core/turn_scores.ts";
import type { Blobs } from "./blob_store.ts";

/** A task record and the version it was read at. A version is opaque; equal versions mean the same record. */
export interface VersionedTask {
  readonly task: TaskRecord;
  readonly version: string;
}

/** A turn's bulk, written ahead of its record (or held, where it is small enough to go with it). Opaque; used by `appendTurn` once or more. */
export interface StagedTurn {
  readonly blobId: string;
  readonly chunks: readonly Uint8Array[];
  /** Whether the chunks are already in the store. */
  readonly written: boolean;
}

export type CreateTaskOutcome =
  | { readonly kind: "created"; readonly version: string }
  /** The id is in use: open, or closed and not yet expired. */
  | { readonly kind: "exists" }
  /** A task was created under the same idempotency key before; this is it. */
  | { readonly kind: "repeated"; readonly task: TaskRecord };

export type AppendOutcome =
  | { readonly kind: "committed"; readonly version: string }
  /** The task record changed since it was read: read it again, decide again, try again with the same staged bulk. */
  | { readonly kind: "task_changed" }
  /** Another turn answers this digest now (`expectRepeat` did not hold). */
  | { readonly kind: "repeat_changed"; readonly turn: number };

export interface AppendTurn {
  /** The record and version that were read. */
  readonly read: VersionedTask;
  /** The record after the turn: head and totals moved. */
  readonly next: TaskRecord;
  /** `turn.record.turn` equals `read.task.turns`. */
  readonly turn: Turn;
  readonly staged: StagedTurn;
  /** The turn that the repeat key must name now (null: none, undefined: any). It names this turn afterwards. */
  readonly expectRepeat: number | null | undefined;
  /** The lease that ends with the commit. */
  readonly callId: string;
}

export interface ListTasks {
  readonly groupId?: string;
  readonly limit: number;
  readonly cursor?: string;
}

/** Blobs are kept under the task's uid, and go when it is dropped or swept. */
export interface TaskStore extends Blobs {
  /** A secret made once per store, from which task keys are derived. 32 bytes. */
  rootSecret(): Promise<Uint8Array>;

  /** Creates a task and its key index in one atomic write. An id whose task has expired (`nowMs`) counts as free. */
  createTask(task: TaskRecord, options: { nowMs: number; idempotencyKey?: string }): Promise<CreateTaskOutcome>;
  /** The task of this id, expired or not, or null. */
  getTask(taskId: string): Promise<VersionedTask | null>;
  /** The task of this key (SHA-256, hex), or null. A dropped task has no key. */
  getTaskByKey(keyHash: string): Promise<VersionedTask | null>;
  /** Writes `next` if the task is still at `version`; the new version, or null where it was not. */
  updateTask(next: TaskRecord, version: string): Promise<string | null>;
  /** Tasks by id order, of one group where it is given. Expired ones are listed until they are swept. */
  listTasks(query: ListTasks): Promise<{ tasks: TaskRecord[]; cursor: string | null }>;
  /** One atomic write: the record becomes `dropped` and the key is gone; then turns, blobs, repeats, leases and events are removed. False where the version was stale. */
  dropTask(dropped: TaskRecord, version: string): Promise<boolean>;

  /** Packs a turn's arrays and detail; writes them ahead where they are too large for one atomic write with the record. */
  stageTurn(task: TaskRecord, turn: Turn): Promise<StagedTurn>;
  /** The commit: one atomic write that checks task version and repeat key, writes record and repeat key, removes the lease. */
  appendTurn(append: AppendTurn): Promise<AppendOutcome>;
  /** Turns `from` (inclusive) to `to` (exclusive), in order, each whole. A missing turn or chunk is an error (`internal`), never a shorter answer. */
  readTurns(task: TaskRecord, from: number, to: number): Promise<Turn[]>;
  /** The turn that answers this digest, or null. */
  getRepeat(uid: string, digest: string): Promise<number | null>;

  /**
   * Keeps scores of committed turns under a teacher's name, 1 to 256 characters; what was there of a turn is replaced.
   * False where the task is dropped or gone: then not all were kept, and those go with it.
   */
  saveScores(
    task: TaskRecord,
    given: { readonly teacher: string; readonly scores: readonly TurnScores[] },
  ): Promise<boolean>;
  /** The scores kept under a teacher's name, by turn; each whole, or an error (`internal`). */
  readScores(task: TaskRecord, teacher: string): Promise<TurnScores[]>;
  /** The names under which scores are kept, in order. */
  listTeachers(task: TaskRecord): Promise<string[]>;

  /** Writes or renews a lease. */
  putCall(task: TaskRecord, lease: CallLease): Promise<void>;
  /** Removes a lease; a missing one is no error. */
  removeCall(uid: string, callId: string): Promise<void>;
  /** Leases of a task, ended or not; the caller compares `untilMs`. */
  listCalls(uid: string): Promise<CallLease[]>;

  /** Appends events. What `mayLinger` may be held back for some milliseconds, to be written together with something else. */
  putEvents(
    task: TaskRecord,
    events: readonly TaskEvent[],
    options?: { readonly mayLinger?: boolean },
  ): Promise<void>;
  /** Events in ulid order. */
  listEvents(uid: string): Promise<TaskEvent[]>;

  /** Removes everything of tasks that expired before `nowMs`, for stores without expiry of their own. Returns how many tasks. */
  sweep(nowMs: number): Promise<number>;
  /** Resolves when every write accepted so far is durable. */
  flush(): Promise<void>;
  /** Flushes and releases the store. */
  close(): Promise<void>;
}
