/** A Postgres database for one file of tests: a server of its own, emptied for each test. */

import postgres from "postgres";
import { migratePostgres } from "../../shared/adapters/postgres/migrate_postgres.ts";
import { findPostgresPrograms, type PostgresServer, startPostgresServer } from "../fixtures/postgres_server.ts";

/** The database under test. */
export interface TestDatabase {
  readonly server: PostgresServer;
  /** Of the database that has the store's tables. */
  readonly url: string;
}

/** Tables whose rows lie under a uid. */
const UID_TABLES = ["uids", "turns", "repeats", "calls", "events", "scores", "blobs"];

/**
 * Registers tests that need a server, which starts before the first of them and ends with the last. Where this machine
 * has none, one step says so and passes.
 */
export function testOnPostgres(subject: string, register: (database: () => TestDatabase) => void): void {
  const programs = findPostgresPrograms();
  if ("missing" in programs) {
    Deno.test(`${subject} is tested where there is a server`, async (test) => {
      await test.step(`skipped: ${programs.missing}`, () => {});
    });
    return;
  }
  let database: TestDatabase | null = null;
  Deno.test.beforeAll(async () => {
    const server = await startPostgresServer(programs.folder);
    database = { server, url: await createDatabase(server, "verbatim") };
    await migratePostgres(database.url);
  });
  Deno.test.afterAll(() => database?.server.dispose());
  register(() => {
    if (database === null) throw new Error("the server has not started");
    return database;
  });
}

/** Creates an empty database; its URL. */
export async function createDatabase(server: PostgresServer, name: string): Promise<string> {
  await withSql(`${server.url}/postgres`, (sql) => sql.unsafe(`create database ${name}`));
  return `${server.url}/${name}`;
}

/** Removes all rows, as if the store had never been used. */
export async function emptyDatabase(url: string): Promise<void> {
  await withSql(url, (sql) => sql.unsafe("truncate verbatim.tasks, verbatim.uids, verbatim.secret cascade"));
}

/** How many rows are kept under a uid, its own included. */
export async function countUnder(url: string, uid: string): Promise<number> {
  const counts = UID_TABLES.map((table) => `(select count(*) from verbatim.${table} where uid = $1)`);
  const [row] = await withSql(url, (sql) => sql.unsafe(`select (${counts.join(" + ")})::integer as rows`, [uid]));
  return row!.rows;
}

/** Runs statements on a connection of their own. */
export async function withSql<T>(url: string, work: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice() {} });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
