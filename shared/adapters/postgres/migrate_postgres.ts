/** Brings a Postgres database to the tables that the store needs. It knows where the migrations are, and none of them. */

import { VerbatimError } from "../../core/errors.ts";
import { openPgPool, type PgTransaction } from "./pg_database.ts";
import { DEFAULT_PG_LIMITS } from "./pg_limits.ts";

/** Migrations in this repository, next to what the host's own tools look for. */
const FOLDER = new URL("../../../supabase/migrations/", import.meta.url);
const FILE_NAME = /^(\d{14})_\w+\.sql$/;
/** Processes that migrate one database take turns by this lock. Nobody else uses the number. */
const LOCK = "8026129711120411";

interface Migration {
  readonly version: string;
  readonly text: string;
}

/**
 * Applies the migrations of supabase/migrations that the database has not seen, in order, in one transaction; the
 * versions applied now. Each file notes its own version, so the host's tools may apply them just as well.
 */
export async function migratePostgres(url: string): Promise<string[]> {
  const migrations = await readMigrations();
  const pool = openPgPool(url, { max: 1, limits: DEFAULT_PG_LIMITS, prepare: false, settings: {} });
  try {
    // Each statement must see what the last holder of the lock did.
    return await pool.begin("isolation level read committed", async (sql) => {
      await sql`select pg_advisory_xact_lock(${LOCK}::bigint)`;
      const before = await appliedVersions(sql);
      const missing = migrations.filter(({ version }) => !before.has(version));
      for (const { text } of missing) await sql.unsafe(text);
      const after = await appliedVersions(sql);
      const unnoted = migrations.find(({ version }) => !after.has(version));
      if (unnoted !== undefined) {
        throw new VerbatimError("internal", `Migration ${unnoted.version} does not note its version.`);
      }
      return missing.map(({ version }) => version);
    });
  } catch (cause) {
    if (cause instanceof VerbatimError) throw cause;
    const reason = cause instanceof Error ? cause.message : "unknown";
    throw new VerbatimError("not_ready", `The database could not be migrated: ${reason}.`, { cause });
  } finally {
    await pool.end({ timeout: 5 });
  }
}

async function appliedVersions(sql: PgTransaction): Promise<Set<string>> {
  const [table] = await sql<{ there: boolean }[]>`select to_regclass('verbatim.migrations') is not null as there`;
  if (table?.there !== true) return new Set();
  const rows = await sql<{ version: string }[]>`select version from verbatim.migrations`;
  return new Set(rows.map(({ version }) => version));
}

/** In the order of their versions. A file of another name is no migration, and an error. */
async function readMigrations(): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for await (const { name } of Deno.readDir(FOLDER)) {
    const version = FILE_NAME.exec(name)?.[1];
    if (version === undefined) throw new VerbatimError("internal", `"${name}" is no name of a migration.`);
    migrations.push({ version, text: await Deno.readTextFile(new URL(name, FOLDER)) });
  }
  return migrations.sort((left, right) => left.version < right.version ? -1 : 1);
}
