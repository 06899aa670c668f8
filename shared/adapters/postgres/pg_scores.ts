/** Scores in Postgres, each turn's under the name of who made them. It does not know what they mean. */

import { Buffer } from "node:buffer";
import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";
import { decodeTurnScores, encodeTurnScores, type TurnScores } from "../../core/turn_scores.ts";
import { oversize, type PgContext } from "./pg_context.ts";

/** Keeps scores; false, and nothing of the turn at hand is kept, where the task is dropped or gone. */
export async function savePgScores(
  context: PgContext,
  task: TaskRecord,
  given: { readonly teacher: string; readonly scores: readonly TurnScores[] },
): Promise<boolean> {
  const limit = context.limits.maxBulkBytes;
  for (const scores of given.scores) {
    const bytes = encodeTurnScores(scores);
    if (bytes.byteLength > limit) throw oversize(bytes.byteLength, { what: "A turn's scores", limit });
    const bulk = Buffer.from(bytes).toString("base64");
    const rows = await context.database.run(({ sql }) =>
      sql`
        insert into verbatim.scores (uid, teacher, turn, bulk)
        select uid, ${given.teacher}, ${scores.turn}::integer, decode(${bulk}, 'base64')
        from verbatim.uids where uid = ${task.uid} and not removed for key share
        on conflict (uid, teacher, turn) do update set bulk = excluded.bulk
        returning turn
      `
    );
    if (rows.length === 0) return false;
  }
  return true;
}

/** A task's scores by one teacher, by turn. */
export async function readPgScores(context: PgContext, task: TaskRecord, teacher: string): Promise<TurnScores[]> {
  const rows = await context.database.run(({ sql }) =>
    sql<{ turn: number; bulk: string }[]>`
      select turn, encode(bulk, 'base64') as bulk from verbatim.scores
      where uid = ${task.uid} and teacher = ${teacher} order by turn
    `
  );
  return rows.map(({ turn, bulk }) => {
    const scores = decodeTurnScores(Uint8Array.from(Buffer.from(bulk, "base64")));
    if (scores.turn === turn) return scores;
    throw new VerbatimError("internal", `Scores of turn ${scores.turn} stand in the place of ${turn}.`);
  });
}

/** Who has scored turns of a task, by name. */
export async function listPgTeachers(context: PgContext, task: TaskRecord): Promise<string[]> {
  const rows = await context.database.run(({ sql }) =>
    sql<{ teacher: string }[]>`select distinct teacher from verbatim.scores where uid = ${task.uid} order by teacher`
  );
  return rows.map(({ teacher }) => teacher);
}
