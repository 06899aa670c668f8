/** Scores in the KV store, each turn's under the name of who made them. It does not know what they mean. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import { decodeTurnScores, encodeTurnScores, type TurnScores } from "../../core/turn_scores.ts";
import { type BlobRef, chunksOf, readBlob, refOf, writeBlob } from "./kv_blobs.ts";
import {
  decodeJson,
  encodeJson,
  expireInMs,
  type KvContext,
  listEntries,
  randomName,
  readEntry,
} from "./kv_context.ts";
import { kvKeys } from "./kv_keys.ts";

/** Entries read at a time. */
const READ_BATCH = 100;
/** Blobs read at once. */
const READ_BLOBS = 4;
/** The first byte of a value: the scores follow, or the place of the blob that holds them. */
const INSIDE = 0;
const OUTSIDE = 1;

/** Keeps scores; false, and nothing of the turn at hand is kept, where the task is dropped or gone. */
export async function saveKvScores(
  context: KvContext,
  task: TaskRecord,
  given: { readonly teacher: string; readonly scores: readonly TurnScores[] },
): Promise<boolean> {
  const key = kvKeys.key(task.keyHash);
  const pointer = await readEntry(context, key);
  // A dropped task has no key, and the removal of what is under its uid does not look twice.
  if (pointer.versionstamp === null || decodeJson<{ uid: string }>(pointer.value).uid !== task.uid) return false;
  const { versionstamp } = pointer;
  const written = await Promise.all(given.scores.map(async (scores) => {
    const version = await context.queue.commit({
      checks: [{ key, versionstamp }],
      sets: [{
        key: kvKeys.scores(task.uid, given.teacher, scores.turn),
        value: await valueOf(context, task, scores),
        expireInMs: expireInMs(context, task),
      }],
      deletes: [],
      claims: [],
    });
    return version !== null;
  }));
  return written.every((kept) => kept);
}

async function valueOf(context: KvContext, task: TaskRecord, scores: TurnScores): Promise<Uint8Array> {
  const bytes = encodeTurnScores(scores);
  if (bytes.byteLength < context.limits.maxValueBytes) return framed(INSIDE, bytes);
  const chunks = chunksOf(context, bytes);
  const blobId = randomName(context);
  await writeBlob(context, { task, blobId, chunks });
  return framed(OUTSIDE, encodeJson(refOf(blobId, chunks)));
}

function framed(kind: number, bytes: Uint8Array): Uint8Array {
  const value = new Uint8Array(1 + bytes.byteLength);
  value[0] = kind;
  value.set(bytes, 1);
  return value;
}

/** A task's scores by one teacher, by turn. */
export async function readKvScores(context: KvContext, task: TaskRecord, teacher: string): Promise<TurnScores[]> {
  const prefix = kvKeys.scoresOf(task.uid, teacher);
  const entries = await listEntries(context, { prefix }, { batchSize: READ_BATCH });
  const all = new Array<TurnScores>(entries.length);
  let next = 0;
  async function readSome(): Promise<void> {
    while (next < entries.length) {
      const index = next++;
      const { key, value } = entries[index]!;
      const bytes = value[0] === INSIDE
        ? value.subarray(1)
        : await readBlob(context, task.uid, decodeJson<BlobRef>(value.subarray(1)));
      const scores = decodeTurnScores(bytes);
      if (scores.turn !== key[3]) {
        throw new VerbatimError("internal", `Scores of turn ${scores.turn} stand in the place of ${String(key[3])}.`);
      }
      all[index] = scores;
    }
  }
  await Promise.all(Array.from({ length: READ_BLOBS }, readSome));
  return all;
}

/** Who has scored turns of a task, by name. One entry is read for each. */
export async function listKvTeachers(context: KvContext, task: TaskRecord): Promise<string[]> {
  const prefix = kvKeys.scoresOf(task.uid);
  const teachers: string[] = [];
  for (;;) {
    const last = teachers.at(-1);
    const selector = last === undefined ? { prefix } : { prefix, start: kvKeys.scoresOf(task.uid, `${last}\0`) };
    const [first] = await listEntries(context, selector, { limit: 1 });
    if (first === undefined) return teachers;
    teachers.push(String(first.key[2]));
  }
}
