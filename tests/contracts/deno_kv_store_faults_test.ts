import assert from "node:assert/strict";
import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { Clock } from "../../shared/ports/clock.ts";
import { clock, holdCommits, keysOf, withFile, withSpy } from "./kv_harness.ts";
import { spyOnKv } from "./kv_spy.ts";
import {
  appendTurn,
  appendUntilCommitted,
  createTask,
  makeTask,
  makeTurn,
  manyIds,
  mustAppend,
  mustGet,
  START_MS,
} from "./store_fixtures.ts";

const LOCKED = "database is locked";
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
