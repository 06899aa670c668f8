import assert from "node:assert/strict";
import { type DenoKvStoreOptions, openDenoKvStore } from "../../shared/adapters/deno_kv_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { type KvSpy, spyOnKv } from "./kv_spy.ts";
import {
  appendTurn,
  createTask,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
  taskAfter,
  TTL_MS,
} from "./store_fixtures.ts";
import { appendUntilCommitted } from "./task_store_contract.ts";

const LOCKED = "database is locked";
/** From the clock's standing moment to an hour after the tasks' end. */
const EXPIRE_IN_MS = TTL_MS + 3_600_000;

const clock: Clock = { now: () => START_MS, sleep: () => Promise.resolve() };

/** A clock that moves when one waits. */
function waitingClock(): Clock {
  let nowMs = START_MS;
  return {
    now: () => nowMs,
    sleep(ms) {
      nowMs += ms;
      return Promise.resolve();
    },
  };
}

interface Opened {
  readonly store: TaskStore;
  readonly spy: KvSpy;
}

/** A store in memory under a spy. */
async function withSpy(
  check: (opened: Opened) => Promise<void>,
  options: Partial<DenoKvStoreOptions> = {},
): Promise<void> {
  const spy = spyOnKv(await Deno.openKv(":memory:"));
  const store = openDenoKvStore({ clock, ...options, kv: spy.kv });
  try {
    await check({ store, spy });
  } finally {
    spy.onCommit = () => {};
    spy.onRead = () => {};
    await store.close();
  }
}

/** A path for a database, and its removal. */
async function withFile(check: (path: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await check(`${folder}/store.kv`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function keysOf(kv: Deno.Kv): Promise<Deno.KvKey[]> {
  const keys: Deno.KvKey[] = [];
  for await (const { key } of kv.list({ prefix: [] })) keys.push(key);
  return keys;
}

/** Holds back every commit until the returned function is called. */
function holdCommits(spy: KvSpy): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  spy.onCommit = () => promise;
  return resolve;
}

/** Resolves when everything that needs no input or output has gone as far as it can. */
function macrotask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("DenoKvStore gives every key of a task its expiry, an hour after the task's own", () =>
  withSpy(async ({ store, spy }) => {
    await store.rootSecret();
    const task = makeTask({ groupId: "g" });
    await store.createTask(task, { nowMs: START_MS, idempotencyKey: "k" });
    let read = await mustGet(store, task.taskId);
    read = await mustAppend(store, read, { turn: makeTurn(0, { completion: manyIds(90_000, 1) }) });
    read = await mustAppend(store, read, { turn: makeTurn(1, { completion: manyIds(30_000, 1) }) });
    read = await mustAppend(store, read, { turn: makeTurn(2, { grammar: "g".repeat(100_000) }) });
    await store.putCall(task, { callId: "c", digest: "d", rid: "r", startedAtMs: 0, untilMs: 0 });
    await store.putEvents(task, [{ ulid: "u", atMs: 0, type: "delivered", turn: 0, detail: {} }]);
    await store.updateTask({ ...read.task, status: "finished" }, read.version);
    const sets = spy.commits.flatMap(({ sets }) => sets).filter(({ key }) => key[0] !== "secret");
    const tables = new Set(sets.map(({ key }) => key[0]));
    assert.deepEqual([...tables].sort(), [
      "blob",
      "call",
      "event",
      "group",
      "idempotency",
      "key",
      "repeat",
      "task",
      "turn",
    ]);
    for (const { key, expireIn } of sets) assert.equal(expireIn, EXPIRE_IN_MS, key.join("/"));
  }));

Deno.test("DenoKvStore gives keys of a task long expired a moment, and no negative expiry", () =>
  withSpy(async ({ store, spy }) => {
    await createTask(store, makeTask({ expiresAtMs: START_MS - 10 * TTL_MS }));
    assert.deepEqual(new Set(spy.commits[0]!.sets.map(({ expireIn }) => expireIn)), new Set([1]));
  }));

Deno.test("DenoKvStore commits a turn of common size in one atomic write and without a read", () =>
  withSpy(async ({ store, spy }) => {
    const read = await createTask(store, makeTask());
    spy.commits.length = spy.reads.length = 0;
    const turn = makeTurn(0, { observation: manyIds(500, 1), completion: manyIds(200, 2) });
    await mustAppend(store, read, { turn, expectRepeat: null });
    assert.deepEqual(spy.reads, []);
    assert.deepEqual(spy.commits.map(({ sets }) => sets.map(({ key }) => key[0])), [["task", "turn", "repeat"]]);
  }));

Deno.test("DenoKvStore commits up to half a megabyte of turn in one atomic write", () =>
  withSpy(async ({ store, spy }) => {
    const read = await createTask(store, makeTask());
    spy.commits.length = 0;
    await mustAppend(store, read, { turn: makeTurn(0, { completion: manyIds(70_000, 2) }) });
    assert.equal(spy.commits.length, 1);
  }));

Deno.test("DenoKvStore writes what is larger ahead, and not again when the append is tried again", () =>
  withSpy(async ({ store, spy }) => {
    const read = await createTask(store, makeTask());
    const current = await mustAppend(store, read, { turn: makeTurn(0) });
    spy.commits.length = 0;
    const turn = makeTurn(0, { completion: manyIds(200_000, 2) });
    const staged = await store.stageTurn(read.task, turn);
    assert.ok(staged.written);
    assert.equal(spy.commits.length, 3);
    const lost = { read, next: taskAfter(read.task, turn), turn, staged, expectRepeat: null, callId: "c" };
    assert.equal((await store.appendTurn(lost)).kind, "task_changed");
    const again = { ...turn, record: { ...turn.record, turn: 1 } };
    const next = taskAfter(current.task, again);
    const won = await store.appendTurn({ ...lost, read: current, next, turn: again });
    assert.equal(won.kind, "committed");
    assert.equal(spy.commits.length, 5);
    assert.ok(spy.commits.slice(3).every(({ sets }) => sets.every(({ key }) => key[0] !== "blob")));
  }));

Deno.test("DenoKvStore readTurns is one pass over the turns", () =>
  withSpy(async ({ store, spy }) => {
    let read = await createTask(store, makeTask());
    for (let number = 0; number < 60; number++) read = await mustAppend(store, read, { turn: makeTurn(number) });
    spy.reads.length = 0;
    assert.equal((await store.readTurns(read.task, 0, 60)).length, 60);
    assert.deepEqual(spy.reads, ["list"]);
    read = await mustAppend(store, read, { turn: makeTurn(60, { completion: manyIds(200_000, 1) }) });
    spy.reads.length = 0;
    await store.readTurns(read.task, 0, 61);
    assert.deepEqual(spy.reads, ["list", "list"]);
  }));

Deno.test("DenoKvStore readTurns fails where a chunk is missing, short or another turn's", async () => {
  const kv = await Deno.openKv(":memory:");
  const store = openDenoKvStore({ kv, clock });
  let read = await createTask(store, makeTask());
  read = await mustAppend(store, read, { turn: makeTurn(0, { completion: manyIds(100_000, 1) }) });
  const chunks = (await keysOf(kv)).filter(([table]) => table === "blob");
  assert.ok(chunks.length > 5);
  for (const key of [chunks[0]!, chunks[3]!, chunks.at(-1)!]) {
    const { value } = await kv.get<Uint8Array>(key);
    assert.ok(value !== null);
    for (
      const damage of [
        () => kv.delete(key),
        () => kv.set(key, value.slice(1)),
        () => kv.set(key, new Uint8Array(65_000)),
      ]
    ) {
      await damage();
      await assert.rejects(store.readTurns(read.task, 0, 1), { code: "internal" });
    }
    await kv.set(key, value);
    assert.equal((await store.readTurns(read.task, 0, 1)).length, 1);
  }
  const turnKey = ["turn", read.task.uid, 0];
  const { value } = await kv.get<Uint8Array>(turnKey);
  for (const bytes of [new Uint8Array(3), value!.slice(1), value!.with(0, 0)]) {
    await kv.set(turnKey, bytes);
    await assert.rejects(store.readTurns(read.task, 0, 1), { code: "internal" });
  }
  await store.close();
});

Deno.test("DenoKvStore answers committed where only the commit's answer was lost", () =>
  withSpy(async ({ store, spy }) => {
    spy.losesAnswer = ({ sets }) => sets.some(({ key }) => key[0] === "task");
    const task = makeTask();
    const created = await store.createTask(task, { nowMs: START_MS });
    assert.equal(created.kind, "created");
    const read = await mustGet(store, task.taskId);
    assert.deepEqual(created, { kind: "created", version: read.version });
    const turn = makeTurn(0, { completion: manyIds(200_000, 1) });
    const outcome = await appendTurn(store, read, { turn, expectRepeat: null });
    const after = await mustGet(store, task.taskId);
    assert.deepEqual(outcome, { kind: "committed", version: after.version });
    assert.equal(after.task.turns, 1);
  }));

Deno.test("DenoKvStore puts commits of different tasks into one atomic write; a failed check hurts only its own", () =>
  withSpy(async ({ store, spy }) => {
    const reads = await Promise.all(Array.from({ length: 5 }, () => createTask(store, makeTask())));
    const stale = reads[2]!;
    await mustAppend(store, stale, { turn: makeTurn(0) });
    const staged = await Promise.all(reads.map((read) => store.stageTurn(read.task, makeTurn(0))));
    spy.commits.length = 0;
    const event = { ulid: "u", atMs: 0, type: "delivered", turn: 0, detail: {} } as const;
    const release = holdCommits(spy);
    const first = store.removeCall(stale.task.uid, "first");
    await macrotask();
    const written = store.putEvents(stale.task, [event]);
    const appends = reads.map((read, index) => {
      const turn = makeTurn(0);
      const next = taskAfter(read.task, turn);
      return store.appendTurn({ read, next, turn, staged: staged[index]!, expectRepeat: null, callId: "c" });
    });
    await macrotask();
    release();
    const outcomes = await Promise.all(appends);
    await Promise.all([first, written]);
    const kinds = outcomes.map(({ kind }) => kind);
    assert.deepEqual(kinds, ["committed", "committed", "task_changed", "committed", "committed"]);
    assert.equal(spy.commits[1]!.checks.length, 10);
    // What held the queue; all together; then the event, and each of the five alone.
    assert.equal(spy.commits.length, 8);
    assert.deepEqual(await store.listEvents(stale.task.uid), [event]);
    for (const read of reads) assert.equal((await mustGet(store, read.task.taskId)).task.turns, 1);
  }, { maxCommits: 1 }));

Deno.test("DenoKvStore gathers events and leases into few atomic writes", () =>
  withSpy(async ({ store, spy }) => {
    const { task } = await createTask(store, makeTask());
    spy.commits.length = 0;
    await Promise.all(Array.from({ length: 200 }, (_, index) => {
      const ulid = String(index).padStart(3, "0");
      if (index % 2 === 1) return store.removeCall(task.uid, ulid);
      return store.putEvents(task, [{ ulid, atMs: 0, type: "delivered", turn: null, detail: {} }]);
    }));
    assert.ok(spy.commits.length <= 4, `${spy.commits.length} commits`);
    assert.equal((await store.listEvents(task.uid)).length, 100);
  }));

Deno.test("DenoKvStore tries again while the database is locked, then says not_ready", () =>
  withSpy(async ({ store, spy }) => {
    let refusals = 30;
    spy.onCommit = () => {
      if (refusals-- > 0) throw new TypeError(refusals % 2 === 0 ? LOCKED : "batch transaction failed");
    };
    const read = await createTask(store, makeTask());
    assert.equal(refusals, -1);
    refusals = Infinity;
    const turn = makeTurn(0);
    await assert.rejects(appendTurn(store, read, { turn }), { code: "not_ready", retryAfterS: 1, retryable: true });
    spy.onRead = () => {
      throw new TypeError(LOCKED);
    };
    await assert.rejects(store.getTask(read.task.taskId), { code: "not_ready" });
    spy.onRead = () => {};
    assert.equal((await mustGet(store, read.task.taskId)).task.turns, 0);
    refusals = 0;
    assert.equal((await appendTurn(store, read, { turn })).kind, "committed");
  }, { clock: waitingClock(), busyDeadlineMs: 5_000 }));

Deno.test("DenoKvStore fails what can't be written as internal, and nothing beside it", () =>
  withSpy(async ({ store, spy }) => {
    const good = await createTask(store, makeTask());
    const bad = await createTask(store, makeTask());
    spy.onCommit = ({ sets }) => {
      if (sets.some(({ key }) => key[1] === bad.task.uid)) throw new TypeError("disk I/O error");
    };
    spy.commits.length = 0;
    const event = { ulid: "u", atMs: 0, type: "delivered", turn: 0, detail: {} } as const;
    const [kept, lost] = await Promise.allSettled([
      store.putEvents(good.task, [event]),
      store.putEvents(bad.task, [event]),
    ]);
    assert.equal(kept.status, "fulfilled");
    assert.equal(lost.status === "rejected" ? lost.reason.code : "", "internal");
    assert.equal(spy.commits[0]!.sets.length, 2);
    assert.equal((await store.listEvents(good.task.uid)).length, 1);
    spy.onRead = () => {
      throw new TypeError("disk I/O error");
    };
    await assert.rejects(store.listEvents(good.task.uid), { code: "internal" });
  }));

Deno.test("DenoKvStore refuses a record that is too large before a turn depends on it", () =>
  withSpy(async ({ store }) => {
    const large = makeTask({ finishMetadata: { text: "\u{1f600}".repeat(16_000) } });
    await assert.rejects(store.createTask(large, { nowMs: START_MS }), { code: "body_too_large", status: 413 });
    const bytes = new TextEncoder().encode(JSON.stringify(makeTask())).byteLength;
    const largest = makeTask({ finishMetadata: { text: "x".repeat(64_000 - bytes - 20) } });
    let read = await createTask(store, largest);
    const grown = { ...read.task, promptTokens: 2 ** 50, completionTokens: 2 ** 50 };
    read = await mustAppend(store, { task: grown, version: read.version }, { turn: makeTurn(0) });
    await store.dropTask({ ...read.task, status: "dropped", closedAtMs: START_MS }, read.version);
    const { task } = await createTask(store, makeTask());
    const huge = { ulid: "u", atMs: 0, type: "failed", turn: null, detail: { text: "x".repeat(70_000) } } as const;
    await assert.rejects(store.putEvents(task, [huge]), { code: "internal" });
    assert.deepEqual(await store.listEvents(task.uid), []);
  }));

Deno.test("DenoKvStore refuses writes at once when too many bytes of them wait", () =>
  withSpy(async ({ store, spy }) => {
    const { task } = await createTask(store, makeTask());
    const release = holdCommits(spy);
    const turn = makeTurn(0, { completion: manyIds(120_000, 1) });
    const stagings = Array.from({ length: 8 }, () => store.stageTurn(task, turn));
    const refused = await Promise.race(stagings.map((staging) => staging.catch((error: unknown) => error)));
    assert.ok(refused instanceof Error && "code" in refused && refused.code === "not_ready");
    release();
    const settled = await Promise.allSettled(stagings);
    assert.ok(settled.some(({ status }) => status === "fulfilled"));
  }, { maxWaitingBytes: 3_000_000, maxCommits: 1 }));

Deno.test("DenoKvStore takes up a removal that was cut short", () =>
  withSpy(async ({ store, spy }) => {
    let read = await createTask(store, makeTask());
    for (let number = 0; number < 3; number++) {
      read = await mustAppend(store, read, { turn: makeTurn(number, { completion: manyIds(90_000, number) }) });
    }
    spy.onRead = (method, argument) => {
      if (method === "list" && JSON.stringify(argument).includes("repeat")) throw new TypeError("connection reset");
    };
    assert.equal(await store.dropTask({ ...read.task, status: "dropped" }, read.version), true);
    spy.onRead = () => {};
    const left = (await keysOf(spy.kv)).filter(([, uid]) => uid === read.task.uid).map(([table]) => table);
    assert.deepEqual([...new Set(left)].sort(), ["removal", "repeat"]);
    assert.equal(await store.sweep(START_MS), 0);
    assert.deepEqual((await keysOf(spy.kv)).filter(([, uid]) => uid === read.task.uid), []);
    assert.equal((await mustGet(store, read.task.taskId)).task.status, "dropped");
  }));

Deno.test("DenoKvStore removes thousands of entries of one task", async () => {
  const kv = await Deno.openKv(":memory:");
  const store = openDenoKvStore({ kv, clock });
  const read = await createTask(store, makeTask());
  await store.putEvents(
    read.task,
    Array.from({ length: 3_000 }, (_, index) => ({
      ulid: `${index}`.padStart(5, "0").padEnd(200, "x"),
      atMs: 0,
      type: "delivered" as const,
      turn: null,
      detail: {},
    })),
  );
  assert.equal(await store.dropTask({ ...read.task, status: "dropped" }, read.version), true);
  assert.deepEqual((await keysOf(kv)).map(([table]) => table), ["task"]);
  await store.close();
});

Deno.test("DenoKvStore keeps everything over a restart", () =>
  withFile(async (path) => {
    const task = makeTask({ groupId: "g" });
    const turns = [makeTurn(0), makeTurn(1, { completion: manyIds(200_000, 1) })];
    const first = openDenoKvStore({ kv: await Deno.openKv(path), clock });
    const secret = await first.rootSecret();
    await first.createTask(task, { nowMs: START_MS, idempotencyKey: "k" });
    let read = await mustGet(first, task.taskId);
    for (const turn of turns) read = await mustAppend(first, read, { turn });
    await first.close();
    const second = openDenoKvStore({ kv: await Deno.openKv(path), clock });
    assert.deepEqual(await second.rootSecret(), secret);
    assert.deepEqual(await second.getTaskByKey(task.keyHash), read);
    assert.deepEqual(await second.readTurns(read.task, 0, 2), turns);
    const again = await second.createTask(makeTask(), { nowMs: START_MS, idempotencyKey: "k" });
    assert.deepEqual(again, { kind: "repeated", task: read.task });
    await mustAppend(second, read, { turn: makeTurn(2) });
    await second.close();
  }));

Deno.test("DenoKvStore shares a file between two stores that lock each other out", () =>
  withFile(async (path) => {
    const spies = [spyOnKv(await Deno.openKv(path)), spyOnKv(await Deno.openKv(path))];
    const stores = spies.map(({ kv }) => openDenoKvStore({ kv, clock: systemClock, busyDeadlineMs: 60_000 }));
    const secrets = await Promise.all(stores.map((store) => store.rootSecret()));
    assert.deepEqual(secrets[0], secrets[1]);
    const shared = makeTask();
    await createTask(stores[0]!, shared);
    const perStore = 4;
    const perTask = 12;
    const own = await Promise.all(stores.flatMap((store) =>
      Array.from({ length: perStore }, async (_, line) => {
        let read = await createTask(store, makeTask());
        for (let number = 0; number < perTask; number++) {
          const length = number === 5 ? 180_000 : 100;
          read = await mustAppend(store, read, { turn: makeTurn(number, { completion: manyIds(length, number) }) });
          if (line === 0) await appendUntilCommitted(store, shared.taskId, { length: 20, seed: number });
        }
        return read;
      })
    ));
    assert.equal((await mustGet(stores[1]!, shared.taskId)).task.turns, 2 * perTask);
    for (const [index, read] of own.entries()) {
      // Read through the other handle.
      const turns = await stores[index < perStore ? 1 : 0]!.readTurns(read.task, 0, perTask);
      for (const [number, turn] of turns.entries()) {
        assert.deepEqual(turn.completion, manyIds(number === 5 ? 180_000 : 100, number));
      }
    }
    await Promise.all(stores.map((store) => store.close()));
  }));

Deno.test("DenoKvStore loses no acknowledged turn when its process is killed", () =>
  withFile(async (path) => {
    for (let run = 0; run < 3; run++) {
      const acknowledged = await killAfter(path, { run: String(run), lines: 20 + 25 * run });
      assert.ok(acknowledged.length > 0);
      const store = openDenoKvStore({ kv: await Deno.openKv(path), clock: systemClock });
      for (const kind of ["small", "large"]) {
        const numbers = acknowledged.filter((line) => line.startsWith(kind)).map((line) => Number(line.split(" ")[1]));
        const { task } = await mustGet(store, `${kind}-${run}`);
        assert.ok(task.turns >= numbers.length, `${task.turns} turns of ${numbers.length} acknowledged`);
        const turns = await store.readTurns(task, 0, task.turns);
        for (const [number, turn] of turns.entries()) {
          assert.deepEqual(turn.completion, manyIds(kind === "large" ? 80_000 : 50, number));
        }
      }
      await store.close();
    }
  }));

/** Lets a writer run until it has acknowledged so many turns, kills it, and gives all lines it wrote. */
async function killAfter(path: string, options: { run: string; lines: number }): Promise<string[]> {
  const script = new URL("kv_writer_child.ts", import.meta.url).pathname;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", "--unstable-kv", script, path, options.run],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let text = "";
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    const killed = text.split("\n").length > options.lines;
    text += piece;
    if (!killed && text.split("\n").length > options.lines) child.kill("SIGKILL");
  }
  await child.status;
  // A line that was cut is not an acknowledgement.
  return text.split("\n").slice(0, -1);
}
