/** Several gateways on one store serve one task as one would: wherever a request goes, it finds all that came before. */

import assert from "node:assert/strict";
import { createMemoryStore } from "../../shared/adapters/memory_store.ts";
import { openDenoKvStore } from "../../shared/adapters/kv/deno_kv_store.ts";
import { openPostgresStore } from "../../shared/adapters/postgres/postgres_store.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import type { TaskStore } from "../../shared/ports/task_store.ts";
import { emptyDatabase, testOnPostgres } from "../contracts/postgres_harness.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { type Body, user } from "./harness.ts";
import { checkPlay, newTotals, playTask } from "./recorded_plays.ts";
import { RetryingClient } from "./retrying_agent.ts";
import { type SharedStoreGateways, type SharingGateway, startSharedStoreGateways } from "./shared_store_gateways.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { until } from "./until.ts";

const RETRY = { "x-stainless-retry-count": "1" };
const request = { messages: [user("Say something")], max_tokens: 12, return_token_ids: true };
const ROWS = "result?format=rows&roles=main,branch,side,superseded";

/** Two stores that share what they keep, and their end. */
interface OpenedStores {
  readonly stores: readonly [TaskStore, TaskStore];
  close(): Promise<void>;
}

function testSharedStore(subject: string, open: () => Promise<OpenedStores>): void {
  function test(what: string, check: (gateways: SharedStoreGateways) => Promise<void>): void {
    Deno.test(`${subject}: ${what}`, async () => {
      const { stores, close } = await open();
      try {
        await using gateways = await startSharedStoreGateways(stores);
        await check(gateways);
        for (const { logger } of [gateways.one, gateways.two]) {
          assert.deepEqual(logger.lines.filter(({ level }) => level === "error"), []);
        }
      } finally {
        await close();
      }
    });
  }

  test("turns alternate between two gateways and are one line", async (gateways) => {
    let sent = 0;
    await playAndCheck(gateways, { seed: 1, next: () => sent++ % 2 === 0 ? gateways.one : gateways.two });
  });

  test("turns go to either gateway at random, several tasks at once, and each task is one line", async (gateways) => {
    const random = seededRandom(2);
    const next = () => random.chance(0.5) ? gateways.one : gateways.two;
    await Promise.all([1, 2, 3, 4].map((seed) => playAndCheck(gateways, { seed, next })));
  });

  test("parallel turns through both gateways are all recorded, each in its sampled context", async (gateways) => {
    const { one, two, engine } = gateways;
    const { id, key } = await gateways.createTask({ history: "branch", echo: "lenient" });
    const first = await one.chat(key, request);
    const messages = [...request.messages, first.body.choices[0].message];
    const heard = await Promise.all([one, two, two, one, one, two].map(async (gateway, k) => {
      const own = { ...request, messages: [...messages, user(k < 3 ? "the same" : `other ${k}`)] };
      const { status, body, headers } = await gateway.chat(key, own);
      assert.equal(status, 200, JSON.stringify(body));
      return { turn: Number(headers.get("x-verbatim-turn")), ids: body.choices[0].token_ids };
    }));
    assert.deepEqual(heard.map(({ turn }) => turn).sort(), [1, 2, 3, 4, 5, 6]);
    await two.admin("POST", `/tasks/${id}/finish`, {});
    const { rows } = (await one.admin("GET", `/tasks/${id}/${ROWS}`)).body;
    assert.equal(rows.length, 6);
    for (const { turn, ids } of heard) {
      const row = rows.find((candidate: Body) => candidate.path.at(-1) === turn);
      assert.deepEqual(row.path, [0, turn]);
      assert.deepEqual(row.tokens.slice(row.prompt_length + row.turns[1].start), ids);
    }
    await checkRowsByForceDecoding(engine, rows);
  });

  test("a retry that comes to the other gateway waits for the call under way and gets its answer", async (gateways) => {
    const { one, two, gate, embedded } = gateways;
    for (const streams of [false, true]) {
      const { id, key } = await gateways.createTask();
      gate.close();
      const first = streams ? one.stream(key, request).then(drained) : one.chat(key, request);
      await gateways.engineRuns(1);
      await leasesOf(gateways, id, 1);
      const again = streams ? two.stream(key, request, RETRY).then(drained) : two.chat(key, request, RETRY);
      // It looks at the other's lease from time to time, and starts nothing of its own.
      const looked = two.spy.calls.get("listCalls") ?? 0;
      await until("the retry has looked twice", () => (two.spy.calls.get("listCalls") ?? 0) >= looked + 2);
      assert.equal(embedded.running, 1);
      gate.open();
      assert.deepEqual(idsOf(await again), idsOf(await first));
      assert.equal((await two.admin("GET", `/tasks/${id}`)).body.turns, 1);
    }
  });

  test("two gateways that both run one retried request make one turn, and both answer it", async (gateways) => {
    const { one, two, gate } = gateways;
    const { id, key } = await gateways.createTask();
    const release = hideLeases(gateways);
    gate.close();
    const answers = [one, two].map((gateway) => gateway.chat(key, request, RETRY));
    await gateways.engineRuns(2);
    release();
    gate.open();
    const [first, second] = await Promise.all(answers);
    assert.deepEqual(second!.body, first!.body);
    const { turns } = (await one.admin("GET", `/tasks/${id}/turns`)).body;
    assert.equal(turns.length, 1);
    await idle(gateways);
    const { decisions } = (await two.admin("GET", `/tasks/${id}/explain`)).body;
    assert.deepEqual(decisions.map((decision: Body) => decision.verdict), ["ok", "replay"]);
  });

  test("two gateways that have both begun to answer one retried request make two siblings", async (gateways) => {
    const { one, two, gate, engine } = gateways;
    const { id, key } = await gateways.createTask({ history: "branch" });
    const release = hideLeases(gateways);
    gate.close();
    const opened = [one, two].map((gateway) => gateway.stream(key, request, RETRY));
    await gateways.engineRuns(2);
    for (let token = 0; token < 3; token++) {
      await until("both wait for a token", () => gate.waiting === 2);
      gate.step();
    }
    const streams = await Promise.all(opened);
    const started = await Promise.all(streams.map((stream) => stream.next()));
    assert.notEqual(started[0]!.id, started[1]!.id);
    release();
    gate.open();
    const [first, second] = await Promise.all(streams.map(drained));
    assert.notDeepEqual(idsOf(second!), idsOf(first!));
    await two.admin("POST", `/tasks/${id}/finish`, {});
    const { rows } = (await one.admin("GET", `/tasks/${id}/${ROWS}`)).body;
    assert.deepEqual(rows.map((row: Body) => row.path.length), [1, 1]);
    await checkRowsByForceDecoding(engine, rows);
  });

  test("the same request without a retry header, sent to the other gateway next, is another sample", async (gateways) => {
    const { one, two } = gateways;
    const { id, key } = await gateways.createTask();
    // The first says late that its answer has left: not before the second has asked.
    const asked = Promise.withResolvers<void>();
    one.spy.before("putEvents", () => asked.promise);
    two.spy.before("listEvents", () => asked.resolve());
    for (const [turn, gateway] of [one, two, one, two].entries()) {
      const { headers } = await gateway.chat(key, request);
      assert.equal(headers.get("x-verbatim-turn"), String(turn));
    }
    assert.equal((await two.admin("GET", `/tasks/${id}`)).body.turns, 4);
  });

  test("an answer that one gateway may not have sent is given again by the other, once", async (gateways) => {
    const { one, two } = gateways;
    const { key } = await gateways.createTask();
    // As if it had died after the commit: nothing says what became of the answer.
    one.spy.before("putEvents", () => "skip");
    await one.chat(key, request);
    await one.idle();
    for (const turn of ["0", "1"]) {
      const { headers } = await two.chat(key, request);
      assert.equal(headers.get("x-verbatim-turn"), turn);
    }
  });

  test("finish at one gateway waits for the call at the other, which commits; new calls are refused there", async (gateways) => {
    const { one, two, gate } = gateways;
    const { id, key } = await gateways.createTask();
    await one.chat(key, request);
    gate.close();
    const running = two.chat(key, { ...request, messages: [user("Go on")] });
    await gateways.engineRuns(1);
    await leasesOf(gateways, id, 1);
    const finishing = one.admin("POST", `/tasks/${id}/finish`, { reward: 1, wait_s: 60 });
    await until("the task is closing", async () => (await two.admin("GET", `/tasks/${id}`)).body.status === "closing");
    const refused = await two.chat(key, { ...request, messages: [user("Too late")] });
    assert.deepEqual([refused.status, refused.body.error.code], [503, "task_closed"]);
    gate.open();
    assert.equal((await running).status, 200);
    const finished = await finishing;
    assert.equal(finished.body.status, "finished");
    assert.deepEqual((await two.admin("POST", `/tasks/${id}/finish`, { reward: 1 })).body, finished.body);
    assert.deepEqual((await two.admin("GET", `/tasks/${id}/result`)).body, finished.body);
    assert.equal((await two.admin("GET", `/tasks/${id}`)).body.turns, 2);
  });

  test("finish that waits no longer refuses the commit of the call at the other gateway", async (gateways) => {
    const { one, two, gate } = gateways;
    const { id, key } = await gateways.createTask();
    gate.close();
    const running = two.chat(key, request);
    await gateways.engineRuns(1);
    await leasesOf(gateways, id, 1);
    const finished = await one.admin("POST", `/tasks/${id}/finish`, { wait_s: 0 });
    assert.equal(finished.body.reason, "nothing was generated");
    gate.open();
    const { status, body, headers } = await running;
    assert.deepEqual([status, body.error.code], [503, "task_closed"]);
    assert.equal(headers.get("x-should-retry"), "false");
    for (const gateway of [one, two]) {
      assert.deepEqual((await gateway.admin("GET", `/tasks/${id}/turns`)).body, { turns: [] });
    }
  });

  test("delete at one gateway: the call at the other can't commit, and the key is dead at both", async (gateways) => {
    const { one, two, gate } = gateways;
    const { id, key } = await gateways.createTask();
    await two.chat(key, request);
    gate.close();
    const running = two.chat(key, { ...request, messages: [user("Go on")] });
    await gateways.engineRuns(1);
    const dropped = await one.admin("DELETE", `/tasks/${id}`);
    assert.equal(dropped.body.status, "dropped");
    gate.open();
    assert.deepEqual([(await running).status, (await running).body.error.code], [503, "task_closed"]);
    for (const gateway of [one, two]) {
      assert.equal((await gateway.chat(key, request)).status, 401);
      assert.equal((await gateway.admin("GET", `/tasks/${id}/turns`)).status, 404);
      assert.deepEqual((await gateway.admin("GET", `/tasks/${id}`)).body.status, "dropped");
    }
  });

  test("max_turns holds over both gateways, calls at once included", async (gateways) => {
    const { one, two } = gateways;
    const { id, key } = await gateways.createTask({ max_turns: 3 });
    const answers = await Promise.all(
      Array.from(
        { length: 8 },
        (_, k) => (k % 2 === 0 ? one : two).chat(key, { ...request, messages: [user(`Number ${k}`)] }),
      ),
    );
    const served = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status !== 200);
    assert.deepEqual([...new Set(refused.map(({ status, body }) => `${status} ${body.error.code}`))], [
      "429 budget_exceeded",
    ]);
    assert.ok(served.length <= 3, `${served.length} were served`);
    assert.equal((await two.admin("GET", `/tasks/${id}`)).body.turns, served.length);
  });

  test("GET /tasks/ID counts the calls in flight at both gateways", async (gateways) => {
    const { one, two, gate } = gateways;
    const { id, key } = await gateways.createTask();
    gate.close();
    const running = [one, two].map((gateway, k) => gateway.chat(key, { ...request, messages: [user(`Number ${k}`)] }));
    await gateways.engineRuns(2);
    await leasesOf(gateways, id, 2);
    for (const gateway of [one, two]) {
      assert.equal((await gateway.admin("GET", `/tasks/${id}`)).body.in_flight, 2);
    }
    gate.open();
    await Promise.all(running);
    await idle(gateways);
    for (const gateway of [one, two]) {
      assert.equal((await gateway.admin("GET", `/tasks/${id}`)).body.in_flight, 0);
    }
  });
}

/** Keeps the marks of calls in flight from both gateways, until the returned function is called. */
function hideLeases({ one, two }: SharedStoreGateways): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const { spy } of [one, two]) spy.before("putCall", () => promise);
  return () => {
    for (const { spy } of [one, two]) spy.before("putCall", null);
    resolve();
  };
}

/** Plays a task whose requests go where they are sent, and checks the record at both. */
async function playAndCheck(
  gateways: SharedStoreGateways,
  options: { readonly seed: number; readonly next: () => SharingGateway },
): Promise<void> {
  const stop = new AbortController().signal;
  const client = new RetryingClient({ url: () => options.next().url, signal: AbortSignal.timeout(60_000) });
  const random = seededRandom(options.seed);
  const play = await playTask(client, { id: `task-${options.seed}`, system: "Be an agent.", turns: 12, random, stop });
  assert.ok(play.heard.every(({ attempts }) => attempts === 1));
  for (const { url } of [gateways.one, gateways.two]) {
    const totals = newTotals();
    await checkPlay(
      new RetryingClient({ url: () => url, signal: AbortSignal.timeout(60_000) }),
      gateways.engine,
      play,
      totals,
    );
    assert.equal(totals.turns, 12);
  }
}

/** The finish frame of a stream, read to its end. */
async function drained(stream: { rest(): Promise<Body[]> }): Promise<Body> {
  return (await stream.rest()).findLast((frame) => frame.choices[0]?.finish_reason !== null);
}

function idsOf(answer: Body): number[] {
  return (answer.body ?? answer).choices[0].token_ids;
}

/** Waits until the store shows this many leases of a task. */
async function leasesOf(gateways: SharedStoreGateways, id: string, count: number): Promise<void> {
  const { store } = gateways.one.spy;
  const read = await store.getTask(id);
  await until(`${count} calls are marked`, async () => (await store.listCalls(read!.task.uid)).length === count);
}

async function idle(gateways: SharedStoreGateways): Promise<void> {
  await Promise.all([gateways.one.idle(), gateways.two.idle()]);
}

testSharedStore("a memory store", () => {
  const store = createMemoryStore();
  return Promise.resolve({ stores: [store, store], close: () => store.close() });
});

testSharedStore("a KV file with two handles", async () => {
  const folder = await Deno.makeTempDir();
  const open = async () => openDenoKvStore({ kv: await Deno.openKv(`${folder}/tasks.sqlite`), clock: systemClock });
  const stores = [await open(), await open()] as const;
  return {
    stores,
    async close() {
      await Promise.all(stores.map((store) => store.close()));
      await Deno.remove(folder, { recursive: true });
    },
  };
});

testOnPostgres("a Postgres store", (database) => {
  testSharedStore("a Postgres store", async () => {
    const { url } = database();
    await emptyDatabase(url);
    const stores = [
      openPostgresStore({ url, clock: systemClock }),
      openPostgresStore({ url, clock: systemClock }),
    ] as const;
    return { stores, close: async () => void await Promise.all(stores.map((store) => store.close())) };
  });
});
