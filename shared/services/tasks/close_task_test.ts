import assert from "node:assert/strict";
import { requestUnits } from "../../core/request_units.ts";
import { makeTask } from "../../../tests/contracts/store_fixtures.ts";
import { createFakeClock, eventLoopTurn, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { createRandomIds } from "../../adapters/random_ids.ts";
import { createTrackedBackground } from "../../adapters/tracked_background.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Background } from "../../ports/background.ts";
import type { BlobStore } from "../../ports/blob_store.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { CallLeases } from "../turns/call_leases.ts";
import { CallsInFlight } from "../turns/calls_in_flight.ts";
import { TaskCloser } from "./close_task.ts";
import { KeptBlobs } from "../extras/kept_blobs.ts";
import { SharedCall } from "../turns/shared_call.ts";
import { TaskService } from "./task_service.ts";
import { TaskViews } from "../turns/task_views.ts";

const FINISH = { outcome: null, cause: null, reward: null, metadata: {}, waitMs: 5000 };

interface World {
  readonly clock: FakeClock;
  readonly store: TaskStore;
  readonly tasks: TaskService;
  readonly inFlight: CallsInFlight;
  readonly closer: TaskCloser;
  readonly background: Background;
  /** Uids whose blobs outside of the store were removed. */
  readonly removed: readonly string[];
  readonly task: TaskRecord;
  /** A call of this process that ends when it is told to, or when it is aborted. */
  run(callId: string): { readonly call: SharedCall; end(): void };
}

async function worldOf(): Promise<World> {
  const clock = createFakeClock();
  const store = createMemoryStore();
  const background = createTrackedBackground(createListLogger());
  const tasks = new TaskService({ store, clock, ids: createRandomIds(clock), defaultTtlMs: 1e6 });
  const inFlight = new CallsInFlight();
  const leases = new CallLeases({ store, clock, background });
  const views = new TaskViews(store, { maxBytes: 1e6 });
  const removed: string[] = [];
  const blobs = new KeptBlobs({ store, outside: outsideThatRemoves(removed), limitBytes: 1 });
  const settings = { ...makeTask().settings, routingKey: null, captureExtras: ["routed_experts"] } as const;
  const { task } = await tasks.create({ taskId: "t", settings, ttlMs: null, idempotencyKey: null });
  return {
    clock,
    store,
    tasks,
    inFlight,
    closer: new TaskCloser({ tasks, inFlight, leases, views, blobs, clock, background }),
    background,
    removed,
    task,
    run(callId) {
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      const call = new SharedCall();
      call.signal.addEventListener("abort", () => end());
      const units = requestUnits({ messages: [], tools: [], settings: {} });
      inFlight.add(task.uid, { callId, digest: callId, call, units, ended });
      return { call, end };
    },
  };
}

/** Fails the first time. */
function outsideThatRemoves(removed: string[]): BlobStore {
  let tries = 0;
  return {
    putBlob: () => Promise.reject(new Error("nothing is put")),
    getBlob: () => Promise.reject(new Error("nothing is got")),
    async removeBlobs({ uid }) {
      await Promise.resolve();
      if (tries++ === 0) throw new Error("not now");
      removed.push(uid);
    },
    sweepBlobs: () => Promise.resolve(0),
  };
}

Deno.test("TaskCloser.drop removes what lies outside of the store, and is done whether it can or not", async () => {
  const { closer, task, background, removed } = await worldOf();
  assert.equal((await closer.drop("t")).status, "dropped");
  await background.idle();
  assert.deepEqual(removed, []);
  await closer.drop("t");
  await background.idle();
  assert.deepEqual(removed, [task.uid]);
});

Deno.test("TaskCloser.finish closes a task without calls at once", async () => {
  const { closer, clock } = await worldOf();
  const { task, closedNow } = await closer.finish("t", { ...FINISH, reward: 1 });
  assert.deepEqual([task.status, task.reward, closedNow], ["finished", 1, true]);
  assert.equal(clock.sleeping, 0);
  assert.equal((await closer.finish("t", FINISH)).closedNow, false);
});

Deno.test("TaskCloser.finish waits for running calls, with new ones refused, and then at once", async () => {
  const { closer, clock, tasks, run } = await worldOf();
  const [first, second] = [run("a"), run("b")];
  const finishing = closer.finish("t", FINISH);
  await clock.untilSleeping(1);
  assert.equal((await tasks.get("t")).task.status, "closing");
  first.end();
  await clock.advance(1000);
  assert.equal((await tasks.get("t")).task.status, "closing");
  second.end();
  const { task } = await finishing;
  assert.equal(task.status, "finished");
  assert.equal(first.call.signal.aborted || second.call.signal.aborted, false);
  assert.equal(clock.sleeping, 0);
});

Deno.test("TaskCloser.finish aborts what still runs when its wait is over", async () => {
  for (const waitMs of [0, 1, 5000]) {
    const { closer, clock, run, inFlight, task } = await worldOf();
    const { call } = run("a");
    const finishing = closer.finish("t", { ...FINISH, waitMs });
    await eventLoopTurn();
    await clock.advance(waitMs);
    assert.equal((await finishing).task.status, "finished");
    assert.equal(call.signal.reason.code, "task_closed");
    assert.equal(inFlight.count(task.uid), 0);
    assert.equal(clock.sleeping, 0);
  }
});

Deno.test("TaskCloser.finish waits for calls of other processes as long as their leases live", async () => {
  const { closer, clock, store, task } = await worldOf();
  const lease = { callId: "other", digest: "d", rid: "r", startedAtMs: clock.now() };
  await store.putCall(task, { ...lease, untilMs: clock.now() + 2000 });
  let finished = false;
  const finishing = closer.finish("t", FINISH).then(() => finished = true);
  await clock.untilSleeping(1);
  await clock.advance(1999);
  assert.equal(finished, false);
  await clock.advance(51);
  await finishing;
});

Deno.test("TaskCloser.finish of an unknown task is task_not_found", async () => {
  const { closer } = await worldOf();
  await assert.rejects(closer.finish("none", FINISH), { code: "task_not_found" });
});

Deno.test("TaskCloser.finish twice at once closes once", async () => {
  const { closer, clock, run } = await worldOf();
  const running = run("a");
  const both = [closer.finish("t", { ...FINISH, reward: 1 }), closer.finish("t", { ...FINISH, reward: 1 })];
  await clock.untilSleeping(2);
  running.end();
  assert.deepEqual((await Promise.all(both)).map(({ closedNow }) => closedNow).sort(), [false, true]);
});

Deno.test("TaskCloser.drop drops at once and aborts the task's calls", async () => {
  const { closer, store, run, task } = await worldOf();
  const { call } = run("a");
  const dropped = await closer.drop("t");
  assert.equal(dropped.status, "dropped");
  assert.equal(call.signal.reason.code, "task_closed");
  assert.equal(await store.getTaskByKey(task.keyHash), null);
  await assert.rejects(closer.finish("t", FINISH), { code: "task_not_found" });
});
