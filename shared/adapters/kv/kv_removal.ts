/**
 * Removing tasks from the KV store. One atomic write makes a task's data unreachable and marks its uid; the rest goes in
 * batches, and the mark last. A removal that was cut short is found by its mark and goes on.
 */

import type { TaskRecord } from "../../core/task.ts";
import { decodeJson, type KvContext, listEntries } from "./kv_context.ts";
import { keyBytesAtMost, kvKeys, UID_TABLES } from "./kv_keys.ts";
import { indexKeys, removalSet, taskClaim, taskSet, versionedOf } from "./kv_tasks.ts";

/** Entries read at a time: chunks are large, everything else is small. */
const BLOB_PAGE = 64;
const PAGE = 256;

/** The record becomes a tombstone and the key is gone, or nothing happens and the answer is false. */
export async function entombKvTask(context: KvContext, dropped: TaskRecord, version: string): Promise<boolean> {
  const versionstamp = await context.queue.commit({
    checks: [{ key: kvKeys.task(dropped.taskId), versionstamp: version }],
    sets: [taskSet(context, dropped, "append"), removalSet(dropped.uid)],
    deletes: [kvKeys.key(dropped.keyHash)],
    claims: [taskClaim(dropped.taskId)],
  });
  return versionstamp !== null;
}

/** Removes everything under a uid, then its mark. May run twice at once, and again after a part of it. */
export async function removeKvRemains(context: KvContext, uid: string): Promise<void> {
  for (const table of UID_TABLES) await removePrefix(context, [table, uid], table === "blob" ? BLOB_PAGE : PAGE);
  await context.queue.commit({ checks: [], sets: [], deletes: [kvKeys.removal(uid)], claims: [] });
}

async function removePrefix(context: KvContext, prefix: Deno.KvKey, pageSize: number): Promise<void> {
  let start: Deno.KvKey | undefined;
  for (;;) {
    const selector = start === undefined ? { prefix } : { prefix, start };
    const entries = await listEntries(context, selector, { limit: pageSize, batchSize: pageSize });
    await deleteKeys(context, entries.map(({ key }) => key));
    if (entries.length < pageSize) return;
    start = entries.at(-1)!.key;
  }
}

async function deleteKeys(context: KvContext, keys: readonly Deno.KvKey[]): Promise<void> {
  const widest = keys.reduce((most, key) => Math.max(most, keyBytesAtMost(key)), 1);
  const perWrite = Math.min(context.limits.maxMutations, Math.floor(context.limits.maxKeyBytes / widest));
  for (let begin = 0; begin < keys.length; begin += perWrite) {
    const deletes = keys.slice(begin, begin + perWrite);
    await context.queue.commit({ checks: [], sets: [], deletes, claims: [] });
  }
}

/** Removes tasks that expired at `nowMs` or before, and ends removals that were cut short. The number of tasks removed. */
export async function sweepKv(context: KvContext, nowMs: number): Promise<number> {
  let removed = 0;
  await forEachPage(context, ["task"], async (entries) => {
    for (const entry of entries) {
      const found = versionedOf(entry);
      if (found === null || nowMs < found.task.expiresAtMs) continue;
      if (await unlinkTask(context, found.task, found.version)) removed++;
    }
  });
  await forEachPage(context, ["removal"], async (entries) => {
    for (const { value } of entries) await removeKvRemains(context, decodeJson<{ uid: string }>(value).uid);
  });
  return removed;
}

async function unlinkTask(context: KvContext, task: TaskRecord, version: string): Promise<boolean> {
  const versionstamp = await context.queue.commit({
    checks: [{ key: kvKeys.task(task.taskId), versionstamp: version }],
    sets: [removalSet(task.uid)],
    deletes: [kvKeys.task(task.taskId), ...await indexKeys(task)],
    claims: [taskClaim(task.taskId)],
  });
  return versionstamp !== null;
}

async function forEachPage(
  context: KvContext,
  prefix: Deno.KvKey,
  visit: (entries: readonly Deno.KvEntry<Uint8Array>[]) => Promise<void>,
): Promise<void> {
  let after: string | undefined;
  for (;;) {
    const selector = after === undefined ? { prefix } : { prefix, start: [...prefix, `${after}\0`] };
    const entries = await listEntries(context, selector, { limit: PAGE, batchSize: PAGE });
    await visit(entries);
    if (entries.length < PAGE) return;
    after = String(entries.at(-1)!.key.at(-1));
  }
}
