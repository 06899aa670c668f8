/** Tasks in this process's memory, for tests and development. Everything goes in and out as a copy. It keeps nothing over a restart. */

import { VerbatimError } from "../core/errors.ts";
import type { CallLease, TaskEvent, TaskRecord } from "../core/task.ts";
import type { Turn, TurnRecord } from "../core/turn.ts";
import { decodeTurnScores, encodeTurnScores, type TurnScores } from "../core/turn_scores.ts";
import { decodeTurnBulk, encodeTurnBulk } from "../core/turn_codec.ts";
import type { BlobOwner, BlobRef } from "../ports/blob_store.ts";
import type {
  AppendOutcome,
  AppendTurn,
  CreateTaskOutcome,
  ListTasks,
  StagedTurn,
  TaskStore,
  VersionedTask,
} from "../ports/task_store.ts";

interface StoredTask {
  readonly task: TaskRecord;
  readonly version: string;
}

interface StoredTurn {
  readonly record: TurnRecord;
  readonly bulk: Uint8Array;
  /** The attempt that wrote it, and the version its commit made. */
  readonly blobId: string;
  readonly version: string;
}

/** What lies under a uid. */
interface Remains {
  readonly turns: StoredTurn[];
  readonly repeats: Map<string, number>;
  readonly calls: Map<string, CallLease>;
  readonly events: Map<string, TaskEvent>;
  /** By teacher and turn. */
  readonly scores: Map<string, Map<number, Uint8Array>>;
  /** By name. */
  readonly blobs: Map<string, Uint8Array>;
}

/** A store that lives and dies with the process. Its tasks are removed by `sweep` alone. */
export function createMemoryStore(): TaskStore {
  return new MemoryStore();
}

class MemoryStore implements TaskStore {
  readonly #tasks = new Map<string, StoredTask>();
  readonly #taskIdsByKey = new Map<string, string>();
  readonly #taskIdsByGroup = new Map<string, Set<string>>();
  readonly #idempotency = new Map<string, { taskId: string; uid: string }>();
  readonly #idempotencyKeys = new Map<string, string>();
  readonly #remains = new Map<string, Remains>();
  readonly #secret = crypto.getRandomValues(new Uint8Array(32));
  #versions = 0;
  #closed = false;

  rootSecret(): Promise<Uint8Array> {
    return this.#run(() => this.#secret.slice());
  }

  createTask(task: TaskRecord, options: { nowMs: number; idempotencyKey?: string }): Promise<CreateTaskOutcome> {
    return this.#run(() => this.#create(task, options));
  }

  getTask(taskId: string): Promise<VersionedTask | null> {
    return this.#run(() => this.#copyOf(taskId));
  }

  getTaskByKey(keyHash: string): Promise<VersionedTask | null> {
    return this.#run(() => {
      const taskId = this.#taskIdsByKey.get(keyHash);
      return taskId === undefined ? null : this.#copyOf(taskId);
    });
  }

  updateTask(next: TaskRecord, version: string): Promise<string | null> {
    return this.#run(() => this.#isAt(next, version) ? this.#put(next) : null);
  }

  listTasks({ groupId, limit, cursor }: ListTasks): Promise<{ tasks: TaskRecord[]; cursor: string | null }> {
    return this.#run(() => {
      const all = groupId === undefined ? this.#tasks.keys() : this.#taskIdsByGroup.get(groupId) ?? [];
      const rest = [...all].filter((taskId) => cursor === undefined || taskId > cursor).sort();
      const page = rest.slice(0, limit);
      return {
        tasks: page.map((taskId) => structuredClone(this.#tasks.get(taskId)!.task)),
        cursor: rest.length > limit ? page.at(-1) ?? null : null,
      };
    });
  }

  dropTask(dropped: TaskRecord, version: string): Promise<boolean> {
    return this.#run(() => {
      if (!this.#isAt(dropped, version)) return false;
      this.#put(dropped);
      this.#taskIdsByKey.delete(dropped.keyHash);
      this.#remains.delete(dropped.uid);
      return true;
    });
  }

  stageTurn(_task: TaskRecord, turn: Turn): Promise<StagedTurn> {
    return this.#run(() => ({ blobId: crypto.randomUUID(), chunks: [encodeTurnBulk(turn)], written: false }));
  }

  appendTurn(append: AppendTurn): Promise<AppendOutcome> {
    return this.#run(() => this.#append(append));
  }

  readTurns(task: TaskRecord, from: number, to: number): Promise<Turn[]> {
    return this.#run(() => {
      const stored = this.#remains.get(task.uid)?.turns.slice(from, to) ?? [];
      if (stored.length < to - from) {
        throw new VerbatimError(
          "internal",
          `Task ${task.taskId} can't be read: ${stored.length} of turns ${from} to ${to - 1} are stored.`,
        );
      }
      return stored.map(({ record, bulk }) => ({ record: structuredClone(record), ...decodeTurnBulk(bulk) }));
    });
  }

  getRepeat(uid: string, digest: string): Promise<number | null> {
    return this.#run(() => this.#remains.get(uid)?.repeats.get(digest) ?? null);
  }

  saveScores(
    task: TaskRecord,
    { teacher, scores }: { readonly teacher: string; readonly scores: readonly TurnScores[] },
  ): Promise<boolean> {
    return this.#run(() => {
      const all = this.#remains.get(task.uid)?.scores;
      if (all === undefined) return false;
      const own = all.get(teacher) ?? new Map<number, Uint8Array>();
      for (const one of scores) own.set(one.turn, encodeTurnScores(one));
      if (own.size > 0) all.set(teacher, own);
      return true;
    });
  }

  readScores(task: TaskRecord, teacher: string): Promise<TurnScores[]> {
    return this.#run(() => {
      const own = [...this.#remains.get(task.uid)?.scores.get(teacher) ?? []];
      return own.sort(([left], [right]) => left - right).map(([, bytes]) => decodeTurnScores(bytes));
    });
  }

  listTeachers(task: TaskRecord): Promise<string[]> {
    return this.#run(() => [...this.#remains.get(task.uid)?.scores.keys() ?? []].sort());
  }

  putBlob(owner: BlobOwner, bytes: Uint8Array): Promise<BlobRef> {
    return this.#run(() => {
      const name = crypto.randomUUID();
      this.#remains.get(owner.uid)?.blobs.set(name, bytes.slice());
      return { name, bytes: bytes.byteLength };
    });
  }

  getBlob(owner: BlobOwner, blob: BlobRef): Promise<Uint8Array<ArrayBuffer>> {
    return this.#run(() => {
      const bytes = this.#remains.get(owner.uid)?.blobs.get(blob.name);
      if (bytes?.byteLength !== blob.bytes) {
        throw new VerbatimError("internal", `The stored bytes ${blob.name} are missing or not whole.`);
      }
      return bytes.slice();
    });
  }

  putCall(task: TaskRecord, lease: CallLease): Promise<void> {
    return this.#run(() => {
      this.#remains.get(task.uid)?.calls.set(lease.callId, structuredClone(lease));
    });
  }

  removeCall(uid: string, callId: string): Promise<void> {
    return this.#run(() => {
      this.#remains.get(uid)?.calls.delete(callId);
    });
  }

  listCalls(uid: string): Promise<CallLease[]> {
    return this.#run(() => structuredClone(sortedValues(this.#remains.get(uid)?.calls)));
  }

  putEvents(task: TaskRecord, events: readonly TaskEvent[]): Promise<void> {
    return this.#run(() => {
      for (const event of events) this.#remains.get(task.uid)?.events.set(event.ulid, structuredClone(event));
    });
  }

  listEvents(uid: string): Promise<TaskEvent[]> {
    return this.#run(() => structuredClone(sortedValues(this.#remains.get(uid)?.events)));
  }

  sweep(nowMs: number): Promise<number> {
    return this.#run(() => {
      const expired = [...this.#tasks.values()].filter(({ task }) => nowMs >= task.expiresAtMs);
      for (const { task } of expired) this.#removeTask(task);
      return expired.length;
    });
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }

  /** Every call runs to its end at once, so each is atomic. */
  async #run<T>(work: () => T): Promise<T> {
    if (this.#closed) {
      throw new VerbatimError("not_ready", "The store is closed; this process is going down.", { retryAfterS: 1 });
    }
    return await Promise.resolve(work());
  }

  #create(task: TaskRecord, options: { nowMs: number; idempotencyKey?: string }): CreateTaskOutcome {
    const { nowMs, idempotencyKey } = options;
    const pointer = idempotencyKey === undefined ? undefined : this.#idempotency.get(idempotencyKey);
    const earlier = pointer === undefined ? undefined : this.#tasks.get(pointer.taskId)?.task;
    if (earlier !== undefined && earlier.uid === pointer?.uid && nowMs < earlier.expiresAtMs) {
      return { kind: "repeated", task: structuredClone(earlier) };
    }
    const existing = this.#tasks.get(task.taskId)?.task;
    if (existing !== undefined && nowMs < existing.expiresAtMs) return { kind: "exists" };
    if (existing !== undefined) this.#removeTask(existing);
    this.#taskIdsByKey.set(task.keyHash, task.taskId);
    this.#remains.set(task.uid, {
      turns: [],
      repeats: new Map(),
      calls: new Map(),
      events: new Map(),
      scores: new Map(),
      blobs: new Map(),
    });
    if (idempotencyKey !== undefined) {
      this.#idempotency.set(idempotencyKey, { taskId: task.taskId, uid: task.uid });
      this.#idempotencyKeys.set(task.uid, idempotencyKey);
    }
    const { groupId } = task.settings;
    if (groupId !== null) {
      const group = this.#taskIdsByGroup.get(groupId) ?? new Set();
      this.#taskIdsByGroup.set(groupId, group.add(task.taskId));
    }
    return { kind: "created", version: this.#put(task) };
  }

  #append({ read, next, turn, staged, expectRepeat, callId }: AppendTurn): AppendOutcome {
    const remains = this.#remains.get(read.task.uid);
    if (turn.record.turn !== read.task.turns || next.uid !== read.task.uid || next.taskId !== read.task.taskId) {
      throw new VerbatimError(
        "internal",
        `Turn ${turn.record.turn} can't be appended to task ${read.task.taskId}; the next turn is ${read.task.turns}.`,
      );
    }
    if (remains === undefined) return { kind: "task_changed" };
    const stored = remains.turns[turn.record.turn];
    if (stored?.blobId === staged.blobId) return { kind: "committed", version: stored.version };
    const answer = remains.repeats.get(turn.record.digest) ?? null;
    if (expectRepeat !== undefined && answer !== expectRepeat && answer !== null) {
      return { kind: "repeat_changed", turn: answer };
    }
    if (!this.#isAt(next, read.version) || (expectRepeat !== undefined && answer !== expectRepeat)) {
      return { kind: "task_changed" };
    }
    const version = this.#put(next);
    remains.turns.push({
      record: structuredClone(turn.record),
      bulk: staged.chunks[0]!,
      blobId: staged.blobId,
      version,
    });
    remains.repeats.set(turn.record.digest, turn.record.turn);
    remains.calls.delete(callId);
    return { kind: "committed", version };
  }

  #copyOf(taskId: string): VersionedTask | null {
    const stored = this.#tasks.get(taskId);
    return stored === undefined ? null : structuredClone(stored);
  }

  #isAt(task: TaskRecord, version: string): boolean {
    return this.#tasks.get(task.taskId)?.version === version;
  }

  #put(task: TaskRecord): string {
    const version = String(++this.#versions);
    this.#tasks.set(task.taskId, { task: structuredClone(task), version });
    return version;
  }

  #removeTask(task: TaskRecord): void {
    this.#tasks.delete(task.taskId);
    this.#taskIdsByKey.delete(task.keyHash);
    this.#remains.delete(task.uid);
    const idempotencyKey = this.#idempotencyKeys.get(task.uid);
    this.#idempotencyKeys.delete(task.uid);
    if (idempotencyKey !== undefined && this.#idempotency.get(idempotencyKey)?.uid === task.uid) {
      this.#idempotency.delete(idempotencyKey);
    }
    const { groupId } = task.settings;
    if (groupId === null) return;
    const group = this.#taskIdsByGroup.get(groupId);
    group?.delete(task.taskId);
    if (group?.size === 0) this.#taskIdsByGroup.delete(groupId);
  }
}

function sortedValues<T>(values: Map<string, T> | undefined): T[] {
  if (values === undefined) return [];
  return [...values].sort(([left], [right]) => left < right ? -1 : 1).map(([, value]) => value);
}
