import assert from "node:assert/strict";
import { migratePostgres } from "../../shared/adapters/postgres/migrate_postgres.ts";
import { createDatabase, testOnPostgres, withSql } from "./postgres_harness.ts";

const FOLDER = new URL("../../supabase/migrations/", import.meta.url);

testOnPostgres("migratePostgres", (database) => {
  Deno.test("migratePostgres applies every migration once, in order", async () => {
    const url = await createDatabase(database().server, "fresh");
    assert.deepEqual(await migratePostgres(url), versions());
    assert.deepEqual(await migratePostgres(url), []);
  });

  Deno.test("migratePostgres may run in several processes at once", async () => {
    const url = await createDatabase(database().server, "contested");
    const applied = await Promise.all([1, 2, 3, 4].map(() => migratePostgres(url)));
    assert.deepEqual(applied.flat(), versions());
  });

  Deno.test("migratePostgres knows the migrations that the host's own tools applied", async () => {
    const url = await createDatabase(database().server, "hosted");
    for (const name of names()) {
      const text = await Deno.readTextFile(new URL(name, FOLDER));
      await withSql(url, (sql) => sql.unsafe(text));
    }
    assert.deepEqual(await migratePostgres(url), []);
  });

  Deno.test("migratePostgres leaves a database as it was where it can't be used, and says why", async () => {
    const { server } = database();
    await withSql(
      `${server.url}/postgres`,
      (sql) => sql.unsafe("create database narrow encoding 'SQL_ASCII' template template0"),
    );
    const url = `${server.url}/narrow`;
    await assert.rejects(migratePostgres(url), { code: "not_ready", message: /encoding SQL_ASCII; it must have UTF8/ });
    const [row] = await withSql(url, (sql) => sql`select to_regnamespace('verbatim') is null as clean`);
    assert.equal(row!.clean, true);
  });

  Deno.test("migratePostgres keeps the tables out of the reach of other roles", async () => {
    const url = await createDatabase(database().server, "guarded");
    await migratePostgres(url);
    await withSql(url, async (sql) => {
      await sql`create role stranger`;
      const [row] = await sql`
        select has_schema_privilege('stranger', 'verbatim', 'usage') as usage,
          has_table_privilege('stranger', 'verbatim.secret', 'select') as reading
      `;
      assert.deepEqual({ ...row }, { usage: false, reading: false });
    });
  });
});

function names(): string[] {
  return [...Deno.readDirSync(FOLDER)].map(({ name }) => name).sort();
}

function versions(): string[] {
  return names().map((name) => name.slice(0, 14));
}
