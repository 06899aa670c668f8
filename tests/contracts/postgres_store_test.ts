import assert from "node:assert/strict";
import { openPostgresStore, type PostgresStoreOptions } from "../../shared/adapters/postgres/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { countUnder, createDatabase, emptyDatabase, testOnPostgres, withSql } from "./postgres_harness.ts";
import {
  appendTurn,
  assertSameTurn,
  createTask,
  eventOf,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
  TTL_MS,
} from "./store_fixtures.ts";
import { testTaskStore } from "./task_store_contract.ts";

/** Texts and numbers that a database may be tempted to change. */
const DELICATE = {
  text: "\0 \ud800 \u{1f600} \\u0000 \\ \" ' {a,b} $1",
  numbers: [5e-324, -1.7976931348623157e308, 0.1 + 0.2, 2 ** 53, 1e21, -1e-7, 123456789.12345679],
  nested: { "": [null, true, { "b": 1, "a": 2 }] },
};

testOnPostgres("PostgresStore", (database) => {
  for (const prepare of [false, true]) {
    testTaskStore(`PostgresStore (${prepare ? "prepared" : "unprepared"})`, async () => {
      const { url } = database();
      await emptyDatabase(url);
      const store = openPostgresStore({ url, clock: systemClock, prepare });
      return { store, residue: (uid) => countUnder(url, uid), dispose: () => store.close() };
    });
  }

  /** Runs a check on an empty database. */
  async function withStore(
    check: (opened: { store: TaskStore; url: string }) => Promise<void>,
    options: Partial<PostgresStoreOptions> = {},
  ): Promise<void> {
    const { url } = database();
    await emptyDatabase(url);
    const store = openPostgresStore({ url, clock: systemClock, ...options });
    try {
      await check({ store, url });
    } finally {
      await store.close();
    }
  }

  Deno.test("PostgresStore gives every record back as it was, to the last digit and character", () =>
    withStore(async ({ store }) => {
      const task = makeTask({ finishMetadata: DELICATE, reward: { a: Number.MIN_VALUE }, groupId: "\0\ud800" });
      const created = await createTask(store, task);
      assert.deepEqual(await store.getTask(task.taskId), created);
      assert.deepEqual((await store.listTasks({ groupId: "\0\ud800", limit: 2 })).tasks, [task]);
      assert.deepEqual((await store.listTasks({ groupId: "\0\ud801", limit: 2 })).tasks, []);
      const made = makeTurn(0, { grammar: DELICATE.text });
      const turn = { ...made, record: { ...made.record, durationMs: 0.1 + 0.2, model: DELICATE.text } };
      const after = await mustAppend(store, created, { turn });
      assertSameTurn((await store.readTurns(after.task, 0, 1))[0], turn);
      const events = [{ ...eventOf("1", 0), detail: DELICATE }, { ...eventOf("2", 0), detail: { text: '"}{' } }];
      await store.putEvents(task, events);
      assert.deepEqual(await store.listEvents(task.uid), events);
      const lease = { callId: "'; drop", digest: '"', rid: DELICATE.text, startedAtMs: 0.5, untilMs: 2 ** 52 };
      await store.putCall(task, lease);
      assert.deepEqual(await store.listCalls(task.uid), [lease]);
    }));

  Deno.test("PostgresStore keeps everything for the next process", () =>
    withStore(async ({ store, url }) => {
      const task = makeTask({ groupId: "g" });
      const turns = [makeTurn(0), makeTurn(1, { completion: manyIds(200_000, 1) })];
      const secret = await store.rootSecret();
      await store.createTask(task, { nowMs: START_MS, idempotencyKey: "k" });
      let read = await mustGet(store, task.taskId);
      for (const turn of turns) read = await mustAppend(store, read, { turn });
      const second = openPostgresStore({ url, clock: systemClock });
      assert.deepEqual(await second.rootSecret(), secret);
      assert.deepEqual(await second.getTaskByKey(task.keyHash), read);
      assert.deepEqual(await second.readTurns(read.task, 0, 2), turns);
      const again = await second.createTask(makeTask(), { nowMs: START_MS, idempotencyKey: "k" });
      assert.deepEqual(again, { kind: "repeated", task: read.task });
      await mustAppend(second, read, { turn: makeTurn(2) });
      await second.close();
    }));

  Deno.test("PostgresStore writes nothing under a task that is gone", () =>
    withStore(async ({ store, url }) => {
      const { task, version } = await createTask(store, makeTask());
      await store.dropTask({ ...task, status: "dropped" }, version);
      await store.putEvents(task, [eventOf("1", 0)]);
      await store.putCall(task, { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 1 });
      await store.removeCall(task.uid, "c");
      assert.equal(await countUnder(url, task.uid), 0);
      assert.deepEqual(await store.listEvents(task.uid), []);
    }));

  Deno.test("PostgresStore sweeps hundreds of tasks, two sweepers at once, and ends removals that were cut short", () =>
    withStore(async ({ store, url }) => {
      const other = openPostgresStore({ url, clock: systemClock });
      const expired = await Promise.all(Array.from({ length: 450 }, () => createTask(store, makeTask())));
      const living = await createTask(store, makeTask({ expiresAtMs: START_MS + 2 * TTL_MS }));
      await mustAppend(store, expired[0]!, { turn: makeTurn(0) });
      await mustAppend(store, living, { turn: makeTurn(0) });
      await withSql(url, async (sql) => {
        await sql`insert into verbatim.uids (uid, removed) values ('cut short', true)`;
        await sql`
          insert into verbatim.events (uid, ulid, event)
          select 'cut short', lpad(n::text, 6, '0'), '{}' from generate_series(1, 4500) as n
        `;
        await sql`
          insert into verbatim.turns (uid, turn, blob_id, version, record, bulk)
          select 'cut short', n, n, n, '{}', '' from generate_series(130, 600) as n
        `;
      });
      const removed = await Promise.all([store, other].map((each) => each.sweep(START_MS + TTL_MS)));
      // A task that one sweeper has in hand is passed over by the other.
      assert.equal(removed[0]! + removed[1]! + await store.sweep(START_MS + TTL_MS), expired.length);
      assert.equal(await countUnder(url, "cut short"), 0);
      assert.equal(await countUnder(url, expired[0]!.task.uid), 0);
      assert.equal((await mustGet(store, living.task.taskId)).task.turns, 1);
      assert.equal(await countUnder(url, living.task.uid), 3);
      await other.close();
    }));

  Deno.test("PostgresStore refuses what is too large before anything depends on it", () =>
    withStore(async ({ store }) => {
      const large = makeTask({ finishMetadata: { text: "\u20ac".repeat(2_000) } });
      await assert.rejects(store.createTask(large, { nowMs: START_MS }), { code: "body_too_large", status: 413 });
      assert.equal(await store.getTask(large.taskId), null);
      const read = await createTask(store, makeTask());
      const event = { ...eventOf("1", 0), detail: { text: "x".repeat(5_000) } };
      await assert.rejects(store.putEvents(read.task, [event]), { code: "internal" });
      const turn = makeTurn(0, { completion: manyIds(2_000, 1) });
      await assert.rejects(appendTurn(store, read, { turn }), { code: "internal" });
      await mustAppend(store, read, { turn: makeTurn(0) });
    }, { maxRecordBytes: 5_000, maxBulkBytes: 10_000 }));

  Deno.test("PostgresStore lets calls wait for a connection, and refuses them when too many wait", () =>
    withStore(async ({ store }) => {
      const read = await createTask(store, makeTask());
      const calls = await Promise.allSettled(Array.from({ length: 9 }, () => store.getTask(read.task.taskId)));
      const refused = calls.filter((call) => call.status === "rejected");
      assert.equal(refused.length, 3);
      for (const { reason } of refused) assert.equal(reason.code, "not_ready");
    }, { maxConnections: 1, maxWaiting: 5 }));

  Deno.test("PostgresStore says what is missing where the database has no tables, or refuses the user", async () => {
    const { server } = database();
    const url = await createDatabase(server, "without_tables");
    const bare = openPostgresStore({ url, clock: systemClock });
    await assert.rejects(bare.getTask("any"), { code: "not_ready", message: /apply the migrations/ });
    await bare.close();
    const stranger = openPostgresStore({
      url: `postgres://verbatim:hunter2@127.0.0.1:${server.port}/verbatim`,
      clock: systemClock,
    });
    await assert.rejects(stranger.getTask("any"), (error: Error & { code: string }) => {
      return error.code === "not_ready" && /refuses the store \(28P01\)/.test(error.message) &&
        !error.message.includes("hunter2");
    });
    await stranger.close();
  });
});

Deno.test("openPostgresStore refuses a URL that it can't read, and does not repeat it", () => {
  for (const url of ["", "mysql://a:hunter2@b/c", "postgres://a:hunter2@:99999999/c", "hunter2"]) {
    assert.throws(() => openPostgresStore({ url, clock: systemClock }), (error: Error & { code: string }) => {
      return error.code === "not_ready" && !error.message.includes("hunter2") && error.cause === undefined;
    });
  }
});
