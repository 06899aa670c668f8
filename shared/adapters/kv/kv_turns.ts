/** Turns in the KV store: staging, the commit, reading back. It does not know when a turn may be committed. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Turn, TurnRecord } from "../../core/turn.ts";
import { decodeTurnBulk, encodeTurnBulk } from "../../core/turn_codec.ts";
import type { AppendOutcome, AppendTurn, StagedTurn } from "../../ports/task_store.ts";
import { type BlobRef, blobSets, chunksOf, readBlob, refOf, writeBlob } from "./kv_blobs.ts";
import type { KvSet } from "./kv_commit_queue.ts";
import {
  type BytesEntry,
  decodeJson,
  encodeJson,
  expireInMs,
  type KvContext,
  listEntries,
  randomName,
  readEntries,
  readEntry,
  refuseOversize,
  setOf,
} from "./kv_context.ts";
import { callClaim } from "./kv_journal.ts";
import { kvKeys } from "./kv_keys.ts";
import { decodeTurnFrame, encodeTurnFrame, type TurnHead } from "./kv_turn_frame.ts";
import { taskClaim, taskSet } from "./kv_tasks.ts";

/** Turns read from the database at a time (at most 13 MB, some 1 MB as a rule). */
const READ_BATCH = 200;
/** Blobs read at once. */
const READ_BLOBS = 4;
/** Bytes of a turn's value that its head takes besides the record, at most. */
const HEAD_BYTES = 512;
/** Most bytes of a record that stands in its turn's value. */
const LARGEST_RECORD_BYTES = 32_768;

export async function stageKvTurn(context: KvContext, task: TaskRecord, turn: Turn): Promise<StagedTurn> {
  const bulk = encodeTurnBulk(turn);
  const chunks = chunksOf(context, bulk);
  const blobId = randomName(context);
  if (bulk.byteLength <= context.limits.maxInlineBytes) return { blobId, chunks, written: false };
  await writeBlob(context, { task, blobId, chunks });
  return { blobId, chunks, written: true };
}

export async function appendKvTurn(context: KvContext, append: AppendTurn): Promise<AppendOutcome> {
  const { read, next, turn, expectRepeat } = append;
  refuseMismatch(append);
  const uid = read.task.uid;
  const repeatKey = kvKeys.repeat(uid, turn.record.digest);
  const checks: Deno.AtomicCheck[] = [{ key: kvKeys.task(next.taskId), versionstamp: read.version }];
  if (expectRepeat === null) checks.push({ key: repeatKey, versionstamp: null });
  if (typeof expectRepeat === "number") {
    const repeat = await readEntry(context, repeatKey);
    if (repeatOf(repeat) !== expectRepeat) return explainFailure(context, append);
    checks.push({ key: repeatKey, versionstamp: repeat.versionstamp });
  }
  const version = await context.queue.commit({
    checks,
    sets: [
      taskSet(context, next, "append"),
      ...await turnSets(context, append),
      setOf(context, { key: repeatKey, value: turn.record.turn, task: next }),
    ],
    deletes: [kvKeys.call(uid, append.callId)],
    claims: [taskClaim(next.taskId), callClaim(uid, append.callId)],
  });
  return version === null ? explainFailure(context, append) : { kind: "committed", version };
}

/** The turn's value, and its chunks where they go with it. */
async function turnSets(context: KvContext, { next, turn, staged }: AppendTurn): Promise<KvSet[]> {
  const recordBytes = encodeJson(turn.record);
  const recordIsLarge = recordBytes.byteLength > LARGEST_RECORD_BYTES;
  const recordBlob = recordIsLarge ? await writeRecord(context, next, recordBytes) : null;
  const record = recordIsLarge ? null : turn.record;
  const room = context.limits.maxValueBytes - HEAD_BYTES - (recordIsLarge ? 0 : recordBytes.byteLength);
  const [only] = staged.chunks;
  const inside = !staged.written && staged.chunks.length === 1 && only!.byteLength <= room ? only! : null;
  const bulk = inside === null
    ? refOf(staged.blobId, staged.chunks)
    : { blobId: staged.blobId, chunks: 0, bytes: inside.byteLength };
  const value = encodeTurnFrame({ record, recordBlob, bulk }, inside);
  refuseOversize(value, { what: "The turn's record", limit: context.limits.maxValueBytes });
  const turnSet = { key: kvKeys.turn(next.uid, turn.record.turn), value, expireInMs: expireInMs(context, next) };
  if (staged.written || inside !== null) return [turnSet];
  return [turnSet, ...blobSets(context, { task: next, blobId: staged.blobId, chunks: staged.chunks })];
}

/** A record too large for its value goes ahead, under a name of this attempt: the next attempt's record may differ. */
async function writeRecord(context: KvContext, task: TaskRecord, bytes: Uint8Array): Promise<BlobRef> {
  const chunks = chunksOf(context, bytes);
  const blobId = randomName(context);
  await writeBlob(context, { task, blobId, chunks });
  return refOf(blobId, chunks);
}

/**
 * Why a commit's checks did not hold. A commit whose acknowledgement was lost on the way finds its own turn there
 * (the blob's name is random), and counts as committed at that turn's versionstamp.
 */
async function explainFailure(context: KvContext, append: AppendTurn): Promise<AppendOutcome> {
  const { read, turn, staged, expectRepeat } = append;
  const uid = read.task.uid;
  const entries = await readEntries(context, [
    kvKeys.task(read.task.taskId),
    kvKeys.repeat(uid, turn.record.digest),
    kvKeys.turn(uid, turn.record.turn),
  ]);
  const [task, repeat, stored] = entries;
  if (stored?.versionstamp && decodeTurnFrame(stored.value).head.bulk.blobId === staged.blobId) {
    return { kind: "committed", version: stored.versionstamp };
  }
  const current = task?.versionstamp ? decodeJson<TaskRecord>(task.value) : null;
  if (current?.uid !== uid) return { kind: "task_changed" };
  const answer = repeat === undefined ? null : repeatOf(repeat);
  if (expectRepeat === undefined || answer === null || answer === expectRepeat) return { kind: "task_changed" };
  return { kind: "repeat_changed", turn: answer };
}

export async function readKvTurns(
  context: KvContext,
  task: TaskRecord,
  range: { from: number; to: number },
): Promise<Turn[]> {
  const { from, to } = range;
  if (to <= from) return [];
  const entries = await listEntries(context, {
    start: kvKeys.turn(task.uid, from),
    end: kvKeys.turn(task.uid, to),
  }, { batchSize: READ_BATCH });
  if (entries.length !== to - from) throw missing(task, `${entries.length} of turns ${from} to ${to - 1} are stored`);
  const turns = new Array<Turn>(entries.length);
  let nextIndex = 0;
  async function readSome(): Promise<void> {
    while (nextIndex < entries.length) {
      const index = nextIndex++;
      turns[index] = await readTurn(context, task, { turn: from + index, value: entries[index]!.value });
    }
  }
  await Promise.all(Array.from({ length: READ_BLOBS }, readSome));
  return turns;
}

async function readTurn(
  context: KvContext,
  task: TaskRecord,
  stored: { turn: number; value: Uint8Array },
): Promise<Turn> {
  const { head, inside } = decodeTurnFrame(stored.value);
  const record = await readRecord(context, task, head);
  const bulk = decodeTurnBulk(inside ?? await readBlob(context, task.uid, head.bulk));
  if (record.turn !== stored.turn) throw missing(task, `turn ${record.turn} stands in the place of ${stored.turn}`);
  return { record, ...bulk };
}

async function readRecord(context: KvContext, task: TaskRecord, head: TurnHead): Promise<TurnRecord> {
  if (head.record !== null) return head.record;
  if (head.recordBlob === null) throw missing(task, "a turn has no record");
  return decodeJson<TurnRecord>(await readBlob(context, task.uid, head.recordBlob));
}

export async function getKvRepeat(context: KvContext, uid: string, digest: string): Promise<number | null> {
  return repeatOf(await readEntry(context, kvKeys.repeat(uid, digest)));
}

function repeatOf(entry: BytesEntry): number | null {
  return entry.versionstamp === null ? null : decodeJson<number>(entry.value);
}

function refuseMismatch({ read, next, turn }: AppendTurn): void {
  if (turn.record.turn === read.task.turns && next.uid === read.task.uid && next.taskId === read.task.taskId) return;
  throw new VerbatimError(
    "internal",
    `Turn ${turn.record.turn} can't be appended to task ${read.task.taskId}; the next turn is ${read.task.turns}.`,
  );
}

function missing(task: TaskRecord, what: string): VerbatimError {
  return new VerbatimError("internal", `Task ${task.taskId} can't be read: ${what}.`);
}
