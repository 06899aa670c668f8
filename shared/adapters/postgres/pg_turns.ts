/** Turns in Postgres: staging, the commit, reading back. It does not know when a turn may be committed. */

import { Buffer } from "node:buffer";
import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Turn, TurnRecord } from "../../core/turn.ts";
import { decodeTurnBulk, encodeTurnBulk } from "../../core/turn_codec.ts";
import type { AppendOutcome, AppendTurn, StagedTurn } from "../../ports/task_store.ts";
import { jsonText, oversize, type PgContext, randomName } from "./pg_context.ts";
import type { PgSql } from "./pg_database.ts";
import { taskText } from "./pg_task_change.ts";

interface TurnRow {
  readonly turn: number;
  readonly record: TurnRecord;
  /** In base64, which costs a third; the driver's own form of bytes doubles them. */
  readonly bulk: string;
}

/** What stands where a commit found no place. */
interface CommitRow {
  readonly uid: string | null;
  readonly has_key: boolean | null;
  readonly answer: number | null;
  readonly blob_id: string | null;
  readonly version: string | null;
}

/** Packs a turn. Nothing is written ahead: a statement takes a turn of any size. */
export function stagePgTurn(context: PgContext, turn: Turn): StagedTurn {
  const bulk = encodeTurnBulk(turn);
  const limit = context.limits.maxBulkBytes;
  if (bulk.byteLength > limit) throw oversize(bulk.byteLength, { what: "A turn's tokens and texts", limit });
  return { blobId: randomName(context), chunks: [bulk], written: false };
}

/**
 * The commit. The update of the task's row is what decides: it waits for another commit that has the row, and finds the
 * version changed afterwards. Repeats change only with the version, so they need no lock of their own.
 */
export async function appendPgTurn(context: PgContext, append: AppendTurn): Promise<AppendOutcome> {
  const { read, next, turn, staged, expectRepeat, callId } = append;
  refuseMismatch(append);
  const { uid, taskId } = next;
  const { digest, turn: number } = turn.record;
  const task = taskText(context, next, "append");
  const record = jsonText(turn.record, { what: "The turn's record", limit: context.limits.maxBulkBytes });
  const bulk = base64Of(staged);
  return await context.database.run(async ({ sql }) => {
    const [committed] = await sql<{ version: string }[]>`
      with changed as (
        update verbatim.tasks
        set record = ${task}::text::json, version = nextval('verbatim.task_versions'), change_id = ${staged.blobId}
        where task_id = ${taskId} and uid = ${uid} and version::text = ${read.version} and (
          ${expectRepeat === undefined}
          or (select turn from verbatim.repeats where uid = ${uid} and digest = ${digest})
            is not distinct from ${expectRepeat ?? null}::integer
        )
        returning version
      ), written as (
        insert into verbatim.turns (uid, turn, blob_id, version, record, bulk)
        select ${uid}, ${number}::integer, ${staged.blobId}, version, ${record}::text::json, decode(${bulk}, 'base64')
        from changed
      ), answered as (
        insert into verbatim.repeats (uid, digest, turn) select ${uid}, ${digest}, ${number}::integer from changed
        on conflict (uid, digest) do update set turn = excluded.turn
      ), ended as (
        delete from verbatim.calls using changed where uid = ${uid} and call_id = ${callId}
      )
      select version from changed
    `;
    return committed === undefined
      ? await explainFailure(sql, append)
      : { kind: "committed", version: committed.version };
  });
}

/**
 * Why a commit found no place. One whose acknowledgement was lost on the way finds its own turn there (the blob's name is
 * random), and counts as committed at the version it made.
 */
async function explainFailure(sql: PgSql, append: AppendTurn): Promise<AppendOutcome> {
  const { read, turn, staged, expectRepeat } = append;
  const { uid, taskId } = read.task;
  const [row] = await sql<CommitRow[]>`
    select tasks.uid, tasks.key_hash is not null as has_key, repeats.turn as answer, turns.blob_id, turns.version
    from (select 1) as always
    left join verbatim.tasks on tasks.task_id = ${taskId}
    left join verbatim.repeats on repeats.uid = ${uid} and repeats.digest = ${turn.record.digest}
    left join verbatim.turns on turns.uid = ${uid} and turns.turn = ${turn.record.turn}
  `;
  const { blob_id, version, answer } = row!;
  if (blob_id === staged.blobId && version !== null) return { kind: "committed", version };
  // A dropped task's repeats may be on their way out.
  if (row!.uid !== uid || row!.has_key !== true) return { kind: "task_changed" };
  if (expectRepeat === undefined || answer === null || answer === expectRepeat) return { kind: "task_changed" };
  return { kind: "repeat_changed", turn: answer };
}

/** Turns of a range in one query. Each is unpacked as it comes in, so the texts of no two are held at once. */
export async function readPgTurns(
  context: PgContext,
  task: TaskRecord,
  range: { from: number; to: number },
): Promise<Turn[]> {
  const { from, to } = range;
  if (to <= from) return [];
  const { turns, failure } = await context.database.run(async ({ sql }) => {
    const turns: Turn[] = [];
    let failure: unknown;
    await sql<TurnRow[]>`
      select turn, record, encode(bulk, 'base64') as bulk from verbatim.turns
      where uid = ${task.uid} and turn >= ${from} and turn < ${to} order by turn
    `.forEach((row) => {
      // The driver is in the middle of its work here, and takes no errors of ours.
      try {
        if (failure === undefined) turns.push(turnOf(task, from + turns.length, row));
      } catch (error) {
        failure = error;
      }
    });
    return { turns, failure };
  });
  if (failure !== undefined) throw failure;
  if (turns.length !== to - from) throw unreadable(task, `${turns.length} of turns ${from} to ${to - 1} are stored`);
  return turns;
}

function turnOf(task: TaskRecord, wanted: number, row: TurnRow): Turn {
  if (row.turn !== wanted || row.record.turn !== wanted) {
    throw unreadable(task, `turn ${row.record.turn} stands in the place of ${wanted}`);
  }
  const bytes = Buffer.from(row.bulk, "base64");
  // A Buffer's `slice` shares its memory, which the codec does not expect of bytes.
  return { record: row.record, ...decodeTurnBulk(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)) };
}

export async function getPgRepeat(context: PgContext, uid: string, digest: string): Promise<number | null> {
  const [row] = await context.database.run(({ sql }) =>
    sql<{ turn: number }[]>`select turn from verbatim.repeats where uid = ${uid} and digest = ${digest}`
  );
  return row?.turn ?? null;
}

function base64Of({ chunks }: StagedTurn): string {
  return Buffer.concat(chunks).toString("base64");
}

function refuseMismatch({ read, next, turn }: AppendTurn): void {
  if (turn.record.turn === read.task.turns && next.uid === read.task.uid && next.taskId === read.task.taskId) return;
  throw new VerbatimError(
    "internal",
    `Turn ${turn.record.turn} can't be appended to task ${read.task.taskId}; the next turn is ${read.task.turns}.`,
  );
}

function unreadable(task: TaskRecord, what: string): VerbatimError {
  return new VerbatimError("internal", `Task ${task.taskId} can't be read: ${what}.`);
}
