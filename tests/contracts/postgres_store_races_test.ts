import assert from "node:assert/strict";
import { openPostgresStore } from "../../shared/adapters/postgres/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { TaskRecord } from "../../shared/core/task.ts";
import type { Turn } from "../../shared/core/turn.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { countUnder, emptyDatabase, testOnPostgres } from "./postgres_harness.ts";
import type { Acknowledged } from "./postgres_racer_child.ts";
import { createTask, makeTask, makeTurn, manyIds, mustGet, START_MS, taskAfter } from "./store_fixtures.ts";

testOnPostgres("PostgresStore with others", (database) => {
  Deno.test("PostgresStore lets two processes race on the same tasks without loss or doubles", async () => {
    const { url } = database();
    await emptyDatabase(url);
    const store = openPostgresStore({ url, clock: systemClock });
    const tasks = Array.from({ length: 6 }, () => makeTask());
    for (const task of tasks) await createTask(store, task);
    const taskIds = tasks.map(({ taskId }) => taskId);
    const lines = await Promise.all(["1", "2"].map((name) => race([url, name, "120", ...taskIds])));
    for (const own of lines) assert.ok(own.filter(({ kind }) => kind === "append").length > 20);
    for (const { taskId } of tasks) {
      const { task } = await mustGet(store, taskId);
      const said = lines.flat().filter((line) => line.taskId === taskId);
      if (task.status === "dropped") {
        assert.equal(said.filter(({ kind }) => kind === "drop").length, 1);
        assert.equal(await countUnder(url, task.uid), 0);
      } else {
        assertHistory(task, await store.readTurns(task, 0, task.turns), said);
      }
    }
    assert.ok(lines.flat().some(({ kind }) => kind === "repeat"), "none raced for a repeat");
    await store.close();
  });

  Deno.test("PostgresStore lets one of two stores make the secret, the task and its turn", async () => {
    const { url } = database();
    await emptyDatabase(url);
    const stores = [1, 2].map(() => openPostgresStore({ url, clock: systemClock }));
    const secrets = await Promise.all(stores.map((store) => store.rootSecret()));
    assert.deepEqual(secrets[0], secrets[1]);
    const taskId = makeTask().taskId;
    const made = await Promise.all(
      stores.map((store) => store.createTask(makeTask({ taskId }), { nowMs: START_MS, idempotencyKey: "one" })),
    );
    assert.deepEqual(made.map(({ kind }) => kind).sort(), ["created", "repeated"]);
    await Promise.all(stores.map((store) => store.close()));
  });

  Deno.test("PostgresStore loses nothing acknowledged when the server dies, and goes on when it is back", async () => {
    const { server, url } = database();
    await emptyDatabase(url);
    const store = openPostgresStore({ url, clock: systemClock, deadlineMs: 60_000 });
    const shared = await createTask(store, makeTask());
    const own = await Promise.all([0, 1, 2, 3].map(() => createTask(store, makeTask())));
    const perLine = 60;
    const acknowledged = new Map<string, Turn>();
    let crashes: Promise<void> = Promise.resolve();
    const lines = own.map(async ({ task }, line) => {
      for (let number = 0; number < perLine; number++) {
        const taskId = number % 3 === 0 ? shared.task.taskId : task.taskId;
        const turn = await commit(store, taskId, { rid: `${line}-${number}`, length: number % 7 === 0 ? 30_000 : 20 });
        acknowledged.set(turn.record.rid, turn);
        if (acknowledged.size % 60 === 30) crashes = crashes.then(() => server.kill()).then(() => server.start());
      }
    });
    await Promise.all(lines);
    await crashes;
    assert.equal(acknowledged.size, own.length * perLine);
    let stored = 0;
    for (const { task: { taskId } } of [shared, ...own]) {
      const { task } = await mustGet(store, taskId);
      for (const turn of await store.readTurns(task, 0, task.turns)) {
        assert.deepEqual(turn, acknowledged.get(turn.record.rid));
        stored++;
      }
    }
    assert.equal(stored, acknowledged.size);
    await store.close();
  });
});

/** Runs a racer to its end; what it was told. */
async function race(args: string[]): Promise<Acknowledged[]> {
  const script = new URL("postgres_racer_child.ts", import.meta.url).pathname;
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-all", "--no-check", script, ...args],
    stdout: "piped",
    stderr: "inherit",
  }).output();
  assert.ok(success);
  return new TextDecoder().decode(stdout).trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** Every acknowledged turn stands where it was said to stand, and no other turn does. */
function assertHistory(task: TaskRecord, turns: readonly Turn[], said: readonly Acknowledged[]): void {
  const appends = said.filter((line) => line.kind === "append").sort((left, right) => left.turn - right.turn);
  assert.deepEqual(
    turns.map(({ record }) => ({ turn: record.turn, rid: record.rid })),
    appends.map(({ turn, rid }) => ({ turn, rid })),
  );
  for (const { record, completion } of turns) assert.deepEqual(completion, manyIds(completion.length, record.turn));
  for (const line of said) {
    if (line.kind === "repeat") assert.equal(turns[line.turn]!.record.digest, line.digest);
    if (line.kind === "finish") assert.equal(task.turns, line.turns);
  }
  assert.equal(task.status === "finished", said.some(({ kind }) => kind === "finish"));
}

/** What a caller does over restarts: the same staged turn again until it is told what became of it. */
async function commit(store: TaskStore, taskId: string, made: { rid: string; length: number }): Promise<Turn> {
  const blank = makeTurn(0, { completion: manyIds(made.length, made.length) });
  const staged = await store.stageTurn(makeTask(), blank);
  for (let tries = 0; tries < 1_000; tries++) {
    const read = await mustGet(store, taskId);
    const turn = { ...blank, record: { ...blank.record, turn: read.task.turns, rid: made.rid } };
    const next = taskAfter(read.task, turn);
    const outcome = await store.appendTurn({ read, next, turn, staged, expectRepeat: null, callId: "c" });
    if (outcome.kind === "committed") return turn;
    assert.equal(outcome.kind, "task_changed");
  }
  throw new Error("the append never won");
}
