import assert from "node:assert/strict";
import {
  createTask,
  makeTask,
  makeTurn,
  mustAppend,
  mustGet,
  START_MS,
} from "../../../tests/contracts/store_fixtures.ts";
import { createFakeClock, eventLoopTurn, type FakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import { createMemoryStore } from "../../adapters/memory_store.ts";
import { createTrackedBackground } from "../../adapters/tracked_background.ts";
import { turnHistory } from "../../core/record_history.ts";
import { requestUnits } from "../../core/request_units.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Background } from "../../ports/background.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { CallLeases } from "./call_leases.ts";
import { SharedCall } from "./shared_call.ts";
import { TaskView } from "./task_views.ts";

interface World {
  readonly clock: FakeClock;
  readonly store: TaskStore;
  readonly background: Background;
  readonly leases: CallLeases;
  readonly task: TaskRecord;
}

async function worldOf(): Promise<World> {
  const clock = createFakeClock(START_MS);
  const store = createMemoryStore();
  const background = createTrackedBackground(createListLogger());
  const task = makeTask();
  await createTask(store, task);
  return { clock, store, background, leases: new CallLeases({ store, clock, background }), task };
}

const CALL = { callId: "mine", digest: "d", rid: "r" };

Deno.test("CallLeases.take marks the call for others and renews the mark until it is released", async () => {
  const { clock, store, background, leases, task } = await worldOf();
  const lease = leases.take(task, CALL);
  await clock.untilSleeping(1);
  const startedAtMs = clock.now();
  await clock.advance(20);
  assert.deepEqual(await store.listCalls(task.uid), [{ ...CALL, startedAtMs, untilMs: startedAtMs + 2_020 }]);
  for (let minute = 0; minute < 3; minute++) {
    await clock.advance(60_000);
    const [renewed] = await store.listCalls(task.uid);
    assert.equal(renewed?.startedAtMs, startedAtMs);
    assert.ok(renewed.untilMs > clock.now());
    assert.ok(renewed.untilMs <= clock.now() + 30_000);
  }
  lease.release({ removed: false });
  await background.idle();
  assert.deepEqual(await store.listCalls(task.uid), []);
  assert.equal(clock.sleeping, 0);
});

Deno.test("CallLeases.take outlives its process by no more than the call had run, and is renewed rarely", async () => {
  const { clock, store, background, leases, task } = await worldOf();
  let written = 0;
  const counting = new CallLeases({
    clock,
    background,
    store: new Proxy(store, {
      get(target, property) {
        if (property === "putCall") written++;
        const value: unknown = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    }),
  });
  const lease = counting.take(task, CALL);
  for (let ranMs = 500; ranMs <= 60_000; ranMs += 500) {
    await clock.advance(500);
    const [renewed] = await store.listCalls(task.uid);
    const left = renewed!.untilMs - clock.now();
    assert.ok(left > 0 && left <= Math.max(2_000, ranMs), `${left} ms are left after ${ranMs}`);
  }
  assert.ok(written < 20, `${written} writes in a minute`);
  lease.release({ removed: false });
  assert.equal(await leases.countElsewhere(task, new Set([CALL.callId])), 0);
  await background.idle();
});

Deno.test("CallLeases.take writes nothing for a call that is over at once", async () => {
  for (const removed of [true, false]) {
    const { clock, store, background, leases, task } = await worldOf();
    const lease = leases.take(task, CALL);
    await clock.advance(19);
    await lease.stop();
    lease.release({ removed });
    await background.idle();
    await clock.advance(60_000);
    assert.deepEqual(await store.listCalls(task.uid), []);
    assert.equal(clock.sleeping, 0);
  }
});

Deno.test("CallLeases.take stops on demand: nothing is written afterwards, and what is there is the commit's", async () => {
  const { clock, store, background, leases, task } = await worldOf();
  const lease = leases.take(task, CALL);
  await clock.advance(20);
  await lease.stop();
  assert.equal((await store.listCalls(task.uid)).length, 1);
  await store.removeCall(task.uid, CALL.callId);
  lease.release({ removed: true });
  await background.idle();
  await clock.advance(60_000);
  assert.deepEqual(await store.listCalls(task.uid), []);
  assert.equal(clock.sleeping, 0);
});

Deno.test("CallLeases.answerElsewhere is null where nobody runs the request and nothing answers it", async () => {
  const { store, leases, task } = await worldOf();
  const view = new TaskView(task.uid, () => {});
  const running = { ...CALL, call: new SharedCall() };
  await store.putCall(task, { ...CALL, startedAtMs: START_MS, untilMs: START_MS + 1000 });
  await store.putCall(task, { callId: "x", digest: "e", rid: "r", startedAtMs: START_MS, untilMs: START_MS + 1000 });
  assert.equal(await leases.answerElsewhere(task, view, running), null, "its own lease and another request's");
});

Deno.test("CallLeases.answerElsewhere waits for the other process's turn and knows it then", async () => {
  const { clock, store, leases, task } = await worldOf();
  const view = new TaskView(task.uid, () => {});
  const lease = { callId: "other", digest: "d", rid: "r", startedAtMs: START_MS, untilMs: START_MS + 30_000 };
  await store.putCall(task, lease);
  let answered: number | null | undefined;
  const answering = leases.answerElsewhere(task, view, { ...CALL, call: new SharedCall() })
    .then((turn) => answered = turn);
  await clock.untilSleeping(1);
  await clock.advance(5000);
  assert.equal(answered, undefined);
  const turn = makeTurn(0, { digest: "d" });
  const conversation = { messages: [{ role: "user" as const, content: "hi", source: 0 }], tools: [], settings: {} };
  const history = turnHistory(view.forest, requestUnits(conversation, { selected: null }), turn.detail.reply);
  await mustAppend(store, await mustGet(store, task.taskId), {
    turn: { ...turn, detail: { ...turn.detail, history } },
    callId: "other",
  });
  await clock.advance(1000);
  await answering;
  assert.equal(answered, 0);
  assert.equal(view.turns.length, 1);
  assert.equal(clock.sleeping, 0);
});

Deno.test("CallLeases.answerElsewhere gives up when the other process is dead, or its own client gone", async () => {
  const { clock, store, leases, task } = await worldOf();
  const view = new TaskView(task.uid, () => {});
  await store.putCall(task, { callId: "o", digest: "d", rid: "r", startedAtMs: START_MS, untilMs: START_MS + 30_000 });
  const dead = leases.answerElsewhere(task, view, { ...CALL, call: new SharedCall() });
  const left = new SharedCall();
  const gone = leases.answerElsewhere(task, view, { ...CALL, call: left });
  await clock.untilSleeping(2);
  const reason = new Error("gone");
  left.cancel(reason);
  await assert.rejects(gone, reason);
  await clock.advance(30_000);
  assert.equal(await dead, null);
  assert.equal(clock.sleeping, 0);
});

Deno.test("CallLeases.countElsewhere sees living leases that are not one's own", async () => {
  const { clock, store, leases, task } = await worldOf();
  assert.equal(await leases.countElsewhere(task, new Set()), 0);
  await store.putCall(task, { ...CALL, startedAtMs: START_MS, untilMs: START_MS + 1000 });
  assert.equal(await leases.countElsewhere(task, new Set()), 1);
  assert.equal(await leases.countElsewhere(task, new Set(["mine"])), 0);
  await clock.advance(1000);
  await eventLoopTurn();
  assert.equal(await leases.countElsewhere(task, new Set()), 0);
});
