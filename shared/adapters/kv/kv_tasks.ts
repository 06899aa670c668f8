/** Task records, keys, groups and idempotency keys in the KV store. It does not know what a status allows. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { CreateTaskOutcome, ListTasks, VersionedTask } from "../../ports/task_store.ts";
import type { KvSet } from "./kv_commit_queue.ts";
import {
  type BytesEntry,
  decodeJson,
  encodeJson,
  expireInMs,
  type KvContext,
  listEntries,
  readEntries,
  readEntry,
  refuseOversize,
  setOf,
} from "./kv_context.ts";
import { boundedKeyPart, kvKeys, sha256Hex } from "./kv_keys.ts";
import { RECORD_HEADROOM_BYTES } from "./kv_limits.ts";

/** What the key index and the idempotency index hold. */
interface TaskPointer {
  readonly taskId: string;
  readonly uid: string;
}

/** How a creation ended, and the uid of the expired task it took the place of, whose remains are to be removed. */
export interface KvCreation {
  readonly outcome: CreateTaskOutcome;
  readonly replacedUid: string | null;
}

/** Attempts of a creation that loses races; each lost race means that another creation won. */
const CREATE_ATTEMPTS = 16;
/** Keys read at once: the database's own limit. */
const READ_MANY = 10;
const LIST_BATCH = 100;
/** Keys whose task is remembered. */
const KNOWN_KEYS = 10_000;
/** How long the database keeps the mark of an unfinished removal, at least; what it speaks of expires by itself. */
const REMOVAL_MARK_MS = 86_400_000;

/** What a write of this task's record, turns or repeats owns. */
export function taskClaim(taskId: string): string {
  return `task ${taskId}`;
}

/** The set of a task's record. One that an append could make too large is refused when it is created or updated. */
export function taskSet(context: KvContext, task: TaskRecord, cause: "change" | "append"): KvSet {
  const value = encodeJson(task);
  const limit = context.limits.maxValueBytes - (cause === "append" ? 0 : RECORD_HEADROOM_BYTES);
  refuseOversize(value, { what: `The record of task ${task.taskId}`, limit, code: "body_too_large" });
  return { key: kvKeys.task(task.taskId), value, expireInMs: expireInMs(context, task) };
}

/** The mark that everything under this uid is to be removed; it goes with the write that makes it unreachable. */
export function removalSet(uid: string): KvSet {
  return { key: kvKeys.removal(uid), value: encodeJson({ uid }), expireInMs: REMOVAL_MARK_MS };
}

export async function createKvTask(
  context: KvContext,
  task: TaskRecord,
  options: { nowMs: number; idempotencyKey?: string },
): Promise<KvCreation> {
  const idempotency = options.idempotencyKey === undefined ? null : await sha256Hex(options.idempotencyKey);
  for (let attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
    const [stored, pointer] = await readEntries(context, [
      kvKeys.task(task.taskId),
      ...(idempotency === null ? [] : [kvKeys.idempotency(idempotency)]),
    ]);
    const existing = stored?.versionstamp ? decodeJson<TaskRecord>(stored.value) : null;
    // The same uid: this very creation, whose acknowledgement was lost.
    if (existing?.uid === task.uid) return creationOf({ kind: "created", version: stored!.versionstamp! });
    const repeated = pointer?.versionstamp ? await livingTask(context, pointer.value, options.nowMs) : null;
    if (repeated !== null) return creationOf({ kind: "repeated", task: repeated });
    if (existing !== null && options.nowMs < existing.expiresAtMs) return creationOf({ kind: "exists" });
    const checks = [stored, pointer].filter((entry) => entry !== undefined);
    const version = await commitCreation(context, { task, replaced: existing, idempotency, checks });
    if (version !== null) return { outcome: { kind: "created", version }, replacedUid: existing?.uid ?? null };
  }
  throw new VerbatimError("not_ready", `Task ${task.taskId} is being created elsewhere; try again later.`, {
    retryAfterS: 1,
  });
}

function creationOf(outcome: CreateTaskOutcome): KvCreation {
  return { outcome, replacedUid: null };
}

async function commitCreation(
  context: KvContext,
  creation: {
    task: TaskRecord;
    replaced: TaskRecord | null;
    idempotency: string | null;
    checks: readonly BytesEntry[];
  },
): Promise<string | null> {
  const { task, replaced, idempotency, checks } = creation;
  const pointer: TaskPointer = { taskId: task.taskId, uid: task.uid };
  const sets = [taskSet(context, task, "change")];
  const group = await groupKey(task);
  const claims = [taskClaim(task.taskId)];
  const pointerKeys = [kvKeys.key(task.keyHash), ...(group === null ? [] : [group])];
  if (idempotency !== null) {
    pointerKeys.push(kvKeys.idempotency(idempotency));
    claims.push(`idempotency ${idempotency}`);
  }
  for (const key of pointerKeys) sets.push(setOf(context, { key, value: pointer, task }));
  if (replaced !== null) sets.push(removalSet(replaced.uid));
  return await context.queue.commit({
    checks: checks.map(({ key, versionstamp }) => ({ key, versionstamp })),
    sets,
    // What is deleted and set in one atomic write is gone: an index entry of the same name is only overwritten.
    deletes: replaced === null ? [] : (await indexKeys(replaced)).filter((key) => !sameGroup(key, group)),
    claims,
  });
}

/** Keys of the indexes that lead to a task. */
export async function indexKeys(task: TaskRecord): Promise<Deno.KvKey[]> {
  const group = await groupKey(task);
  return [kvKeys.key(task.keyHash), ...(group === null ? [] : [group])];
}

async function groupKey(task: TaskRecord): Promise<Deno.KvKey | null> {
  const groupId = task.settings.groupId;
  return groupId === null ? null : kvKeys.group(await boundedKeyPart(groupId), task.taskId);
}

function sameGroup(key: Deno.KvKey, group: Deno.KvKey | null): boolean {
  return group !== null && key.length === group.length && key.every((part, index) => part === group[index]);
}

/** The task that an idempotency key names, if it is still that one and has not expired. */
async function livingTask(context: KvContext, pointerValue: Uint8Array, nowMs: number): Promise<TaskRecord | null> {
  const pointer = decodeJson<TaskPointer>(pointerValue);
  const task = (await getKvTask(context, pointer.taskId))?.task;
  return task !== undefined && task.uid === pointer.uid && nowMs < task.expiresAtMs ? task : null;
}

export async function getKvTask(context: KvContext, taskId: string): Promise<VersionedTask | null> {
  return versionedOf(await readEntry(context, kvKeys.task(taskId)));
}

/** `known` remembers which task a key opens: that never changes, and saves a read. The task's record decides. */
export async function getKvTaskByKey(
  context: KvContext,
  keyHash: string,
  known: Map<string, string>,
): Promise<VersionedTask | null> {
  let taskId = known.get(keyHash);
  if (taskId === undefined) {
    const entry = await readEntry(context, kvKeys.key(keyHash));
    if (entry.versionstamp === null) return null;
    taskId = decodeJson<TaskPointer>(entry.value).taskId;
    const [oldest] = known.keys();
    if (oldest !== undefined && known.size >= KNOWN_KEYS) known.delete(oldest);
    known.set(keyHash, taskId);
  }
  const found = await getKvTask(context, taskId);
  return found !== null && found.task.keyHash === keyHash && found.task.status !== "dropped" ? found : null;
}

export async function updateKvTask(context: KvContext, next: TaskRecord, version: string): Promise<string | null> {
  return await context.queue.commit({
    checks: [{ key: kvKeys.task(next.taskId), versionstamp: version }],
    sets: [taskSet(context, next, "change")],
    deletes: [],
    claims: [taskClaim(next.taskId)],
  });
}

/** The cursor is the last task id seen. */
export async function listKvTasks(
  context: KvContext,
  query: ListTasks,
): Promise<{ tasks: TaskRecord[]; cursor: string | null }> {
  const { groupId, limit, cursor } = query;
  const prefix = groupId === undefined ? ["task"] : ["group", await boundedKeyPart(groupId)];
  const tasks: TaskRecord[] = [];
  let last = cursor;
  for (;;) {
    // The least id after `last` is `last` with the least character appended.
    const selector = last === undefined ? { prefix } : { prefix, start: [...prefix, `${last}\0`] };
    const wanted = limit + 1 - tasks.length;
    const entries = await listEntries(context, selector, { limit: wanted, batchSize: Math.min(LIST_BATCH, wanted) });
    const found = groupId === undefined
      ? entries.map(({ value }) => decodeJson<TaskRecord>(value))
      : (await readTasksOf(context, entries)).filter((task) => task.settings.groupId === groupId);
    tasks.push(...found);
    if (tasks.length > limit) return { tasks: tasks.slice(0, limit), cursor: tasks[limit - 1]?.taskId ?? last ?? null };
    if (entries.length < wanted) return { tasks, cursor: null };
    last = String(entries.at(-1)!.key.at(-1));
  }
}

/** The tasks that index entries name; an entry whose task is gone or another one now names none. */
async function readTasksOf(context: KvContext, entries: readonly Deno.KvEntry<Uint8Array>[]): Promise<TaskRecord[]> {
  const pointers = entries.map(({ value }) => decodeJson<TaskPointer>(value));
  const batches: Promise<BytesEntry[]>[] = [];
  for (let start = 0; start < pointers.length; start += READ_MANY) {
    const keys = pointers.slice(start, start + READ_MANY).map(({ taskId }) => kvKeys.task(taskId));
    batches.push(readEntries(context, keys));
  }
  const stored = (await Promise.all(batches)).flat();
  return stored.flatMap((entry, index) => {
    const task = versionedOf(entry)?.task;
    return task !== undefined && task.uid === pointers[index]!.uid ? [task] : [];
  });
}

export function versionedOf(entry: BytesEntry): VersionedTask | null {
  if (entry.versionstamp === null) return null;
  return { task: decodeJson<TaskRecord>(entry.value), version: entry.versionstamp };
}
