import assert from "node:assert/strict";
import { openPostgresStore, type PostgresStoreOptions } from "../../shared/adapters/postgres/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { createFakeClock, type FakeClock } from "../fixtures/fake_clock.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { asciiOf, type Passing, startTcpProxy, type TcpProxy } from "../fixtures/tcp_proxy.ts";
import { countUnder, emptyDatabase, type TestDatabase, testOnPostgres, withSql } from "./postgres_harness.ts";
import {
  appendTurn,
  appendUntilCommitted,
  createTask,
  eventOf,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
} from "./store_fixtures.ts";

/** A store behind a proxy, and one on the direct way. */
interface Faulty {
  readonly store: TaskStore;
  readonly other: TaskStore;
  readonly proxy: TcpProxy;
  readonly url: string;
}

testOnPostgres("PostgresStore under faults", (database) => {
  Deno.test("PostgresStore knows its own commit when the acknowledgement was lost", () =>
    withFaulty(database(), async ({ store, other, proxy }) => {
      for (const othersComeBetween of [false, true]) {
        const read = await createTask(store, makeTask());
        const turn = makeTurn(0);
        const cuts = cutOnce(proxy, isAnswerTo("insert into verbatim.turns"), async () => {
          if (!othersComeBetween) return;
          const current = await mustGet(other, read.task.taskId);
          assert.equal((await appendTurn(other, current, { turn: makeTurn(1) })).kind, "committed");
        });
        const outcome = await appendTurn(store, read, { turn, expectRepeat: null });
        assert.equal(cuts.count, 1);
        const stored = await mustGet(store, read.task.taskId);
        assert.equal(stored.task.turns, othersComeBetween ? 2 : 1);
        assert.equal(outcome.kind, "committed");
        if (!othersComeBetween) assert.deepEqual(outcome, { kind: "committed", version: stored.version });
        const [first] = await store.readTurns(stored.task, 0, 1);
        assert.equal(first!.record.answerId, turn.record.answerId);
      }
    }));

  Deno.test("PostgresStore knows its own creation, update and drop when the acknowledgement was lost", () =>
    withFaulty(database(), async ({ store, proxy, url }) => {
      const task = makeTask({ groupId: "g" });
      const creation = cutOnce(proxy, isAnswerTo("insert into verbatim.tasks"));
      const created = await store.createTask(task, { nowMs: START_MS, idempotencyKey: "k" });
      let read = await mustGet(store, task.taskId);
      assert.deepEqual(created, { kind: "created", version: read.version });
      const update = cutOnce(proxy, isAnswerTo("update verbatim.tasks"));
      const version = await store.updateTask({ ...task, cause: "first" }, read.version);
      read = await mustGet(store, task.taskId);
      assert.deepEqual([read.version, read.task.cause], [version, "first"]);
      const drop = cutOnce(proxy, isAnswerTo("with entombed"));
      assert.equal(await store.dropTask({ ...read.task, status: "dropped" }, read.version), true);
      assert.equal(await store.getTaskByKey(task.keyHash), null);
      assert.deepEqual([creation.count, update.count, drop.count], [1, 1, 1]);
      assert.equal(await countUnder(url, task.uid), 0);
    }));

  Deno.test("PostgresStore takes another's change for no change of its own", () =>
    withFaulty(database(), async ({ store, other, proxy }) => {
      const { task, version } = await createTask(store, makeTask());
      const cuts = cutOnce(proxy, isQuestion("update verbatim.tasks"), async () => {
        assert.notEqual(await other.updateTask({ ...task, cause: "same" }, version), null);
      });
      assert.equal(await store.updateTask({ ...task, cause: "same" }, version), null);
      assert.equal(cuts.count, 1);
    }));

  Deno.test("PostgresStore writes events and leases whose acknowledgement was lost once", () =>
    withFaulty(database(), async ({ store, proxy }) => {
      const { task } = await createTask(store, makeTask());
      const events = [eventOf("1", 0), eventOf("2", 1)];
      const lease = { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 1 };
      const writes = cutOnce(proxy, isAnswerTo("insert into verbatim.events"));
      await store.putEvents(task, events);
      const leases = cutOnce(proxy, isAnswerTo("insert into verbatim.calls"));
      await store.putCall(task, lease);
      assert.deepEqual(await store.listEvents(task.uid), events);
      assert.deepEqual(await store.listCalls(task.uid), [lease]);
      assert.deepEqual([writes.count, leases.count], [1, 1]);
    }));

  Deno.test("PostgresStore loses nothing and doubles nothing while connections are cut at random", () =>
    withFaulty(database(), async ({ store, other, proxy }) => {
      const random = seededRandom(11);
      const { task } = await createTask(store, makeTask());
      let cuts = 0;
      proxy.onBytes = ({ from }) => {
        // Logging in takes many passages: cutting more often lets few through.
        if (!random.chance(0.04)) return "pass";
        cuts++;
        return from === "client" && random.chance(0.7) ? "pass_and_cut" : "cut";
      };
      const seeds = Array.from({ length: 60 }, (_, seed) => seed);
      const lines = Array.from({ length: 6 }, async (_, line) => {
        for (const seed of seeds.filter((each) => each % 6 === line)) {
          await appendUntilCommitted(line === 0 ? other : store, task.taskId, { length: 3, seed });
        }
      });
      await Promise.all(lines);
      proxy.onBytes = () => "pass";
      assert.ok(cuts > 5, `${cuts} cuts`);
      const stored = await mustGet(store, task.taskId);
      assert.equal(stored.task.turns, seeds.length);
      const turns = await store.readTurns(stored.task, 0, seeds.length);
      assert.deepEqual(
        turns.map(({ record }) => record.rid).sort(),
        seeds.map((seed) => `attempt-${seed}`).sort(),
      );
      for (const { record, completion } of turns) {
        assert.deepEqual(completion, manyIds(3, Number(record.rid.slice("attempt-".length))));
      }
    }));

  Deno.test("PostgresStore gives a connection up that does not answer", async () => {
    const clock = createFakeClock();
    await withFaulty(database(), async ({ store, other, proxy }) => {
      const read = await createTask(other, makeTask());
      assert.deepEqual(await store.getTask(read.task.taskId), read);
      const release = holdAnswers(proxy, "select record");
      const found = store.getTask(read.task.taskId);
      await clock.untilSleeping(1);
      assert.deepEqual(await settled(found, clock), { value: read });
      release();
    }, { clock, deadlineMs: 60_000 });
  });

  Deno.test("PostgresStore says that a write may have happened when no answer came in time", async () => {
    const clock = createFakeClock();
    await withFaulty(database(), async ({ store, other, proxy }) => {
      const { task, version } = await createTask(other, makeTask());
      assert.ok(await store.getTask(task.taskId));
      const release = holdAnswers(proxy, "update verbatim.tasks");
      const { error } = await settled(store.updateTask({ ...task, cause: "late" }, version), clock);
      assert.ok(error instanceof Error && "code" in error && error.code === "not_ready");
      assert.match(error.message, /gave no answer for 20000 ms; try again later. What it was asked last may have/);
      release();
    }, { clock, deadlineMs: 10_000 });
  });

  Deno.test("PostgresStore gives a server up that is not there, after its deadline", async () => {
    const clock = createFakeClock();
    const proxy = startTcpProxy(1);
    const port = proxy.port;
    await proxy[Symbol.asyncDispose]();
    const store = openPostgresStore({ url: `postgres://nobody:secret@127.0.0.1:${port}/none`, clock });
    const startedAtMs = clock.now();
    const { error } = await settled(store.getTask("any"), clock);
    assert.ok(error instanceof Error && "code" in error && error.code === "not_ready");
    assert.ok("retryAfterS" in error && error.retryAfterS === 1);
    assert.ok(!error.message.includes("may have happened") && !error.message.includes("secret"));
    assert.ok(clock.now() - startedAtMs >= 10_000);
    await store.close();
  });

  Deno.test("PostgresStore does without settings of its own where a pooler refuses them", () =>
    withFaulty(database(), async ({ store, proxy }) => {
      let refused = 0;
      proxy.onBytes = async ({ from, clientText, answer }) => {
        if (from !== "client" || !clientText.includes("statement_timeout")) return "pass";
        refused++;
        await answer(errorResponse("FATAL", "08P01", "unsupported startup parameter: statement_timeout"));
        return "cut";
      };
      const read = await createTask(store, makeTask());
      await Promise.all(Array.from({ length: 12 }, () => store.getTask(read.task.taskId)));
      assert.equal(refused, 1);
    }));

  Deno.test("PostgresStore goes on when the server ended its connections", () =>
    withFaulty(database(), async ({ other, url }) => {
      let read = await createTask(other, makeTask());
      for (let number = 0; number < 3; number++) {
        await withSql(url, (sql) =>
          sql`
            select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'verbatim' and pid <> pg_backend_pid()
          `);
        read = await mustAppend(other, read, { turn: makeTurn(number) });
      }
      assert.deepEqual(await other.getTask(read.task.taskId), read);
    }));

  for (const limits of [{ lockTimeoutMs: 20 }, { lockTimeoutMs: 0, statementTimeoutMs: 20 }]) {
    const name = Object.keys(limits).at(-1);
    Deno.test(`PostgresStore waits for a lock in pieces of ${name}`, async () => {
      const { promise: tried, resolve } = Promise.withResolvers<void>();
      let tries = 0;
      const nothing = () => {};
      const debug = () => ++tries === 3 && resolve();
      const logger = { debug, info: nothing, warn: nothing, error: nothing };
      await withFaulty(database(), async ({ store, other, url }) => {
        const read = await createTask(other, makeTask());
        const found = await withSql(url, async (sql) => {
          const release = Promise.withResolvers<void>();
          const locked = Promise.withResolvers<void>();
          const holding = sql.begin(async (locking) => {
            await locking`lock table verbatim.tasks in access exclusive mode`;
            locked.resolve();
            await release.promise;
          });
          await locked.promise;
          const found = store.getTask(read.task.taskId);
          await tried;
          release.resolve();
          await holding;
          return await found;
        });
        assert.deepEqual(found, read);
      }, { ...limits, deadlineMs: 60_000, logger });
    });
  }
});

async function withFaulty(
  { server, url }: TestDatabase,
  check: (faulty: Faulty) => Promise<void>,
  options: Partial<PostgresStoreOptions> = {},
): Promise<void> {
  await emptyDatabase(url);
  await using proxy = startTcpProxy(server.port);
  const faultyUrl = url.replace(`:${server.port}/`, `:${proxy.port}/`);
  const store = openPostgresStore({ url: faultyUrl, clock: systemClock, deadlineMs: 60_000, ...options });
  const other = openPostgresStore({ url, clock: systemClock });
  try {
    await check({ store, other, proxy, url });
  } finally {
    proxy.onBytes = () => "pass";
    await Promise.all([store.close(), other.close()]);
  }
}

/** Cuts a connection the first time that something passes, after `before`; the number of cuts. */
function cutOnce(
  proxy: TcpProxy,
  when: (passing: Passing) => boolean,
  before: () => Promise<void> = () => Promise.resolve(),
): { readonly count: number } {
  const cuts = { count: 0 };
  proxy.onBytes = async (passing) => {
    if (cuts.count > 0 || !when(passing)) return "pass";
    cuts.count++;
    await before();
    return "cut";
  };
  return cuts;
}

/** Holds back what the server answers to statements with this text, on one connection; the function lets it go. */
function holdAnswers(proxy: TcpProxy, text: string): () => void {
  const { promise, resolve } = Promise.withResolvers<"cut">();
  let held = false;
  proxy.onBytes = (passing) => {
    if (held || !isAnswerTo(text)(passing)) return "pass";
    held = true;
    return promise;
  };
  return () => resolve("cut");
}

function isQuestion(text: string): (passing: Passing) => boolean {
  return ({ from, bytes }) => from === "client" && asciiOf(bytes).includes(text);
}

/** The end of what a server answers to a statement: its tag, such as `UPDATE 1`. */
function isAnswerTo(text: string): (passing: Passing) => boolean {
  return ({ from, bytes, clientText }) =>
    from === "server" && clientText.includes(text) && /(SELECT|INSERT 0|UPDATE|DELETE) \d+\0/.test(asciiOf(bytes));
}

/** How a call ends while a clock moves on. */
async function settled(call: Promise<unknown>, clock: FakeClock): Promise<{ value?: unknown; error?: unknown }> {
  let end: { value?: unknown; error?: unknown } | null = null;
  call.then((value) => end = { value }, (error) => end = { error });
  for (let steps = 0; steps < 2_000; steps++) {
    await clock.advance(100);
    if (end !== null) return end;
  }
  throw new Error("the call does not end");
}

/** A message of the server's protocol: type, length, fields with their letters, a zero. */
function errorResponse(severity: string, code: string, message: string): Uint8Array {
  const fields = new TextEncoder().encode(`S${severity}\0V${severity}\0C${code}\0M${message}\0\0`);
  const bytes = new Uint8Array(5 + fields.byteLength);
  bytes[0] = "E".charCodeAt(0);
  new DataView(bytes.buffer).setUint32(1, 4 + fields.byteLength);
  bytes.set(fields, 5);
  return bytes;
}
