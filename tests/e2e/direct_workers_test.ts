/** Agents before three workers without a router: each stays on one, and what dies under them costs time, not tokens. */

import assert from "node:assert/strict";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, user } from "./harness.ts";
import { until } from "./until.ts";
import { startWorkerFleet, type WorkerFleet } from "./worker_fleet.ts";

const TURNS = 4;
const AGENTS = 9;

/** Leads a conversation of some turns, each of which must succeed at once; the cached tokens of each. */
async function leadAgent(fleet: WorkerFleet, id: string, key: string): Promise<number[]> {
  const messages: Body[] = [user(`I am ${id}.`)];
  const cached: number[] = [];
  while (cached.length < TURNS) {
    const { status, body } = await fleet.chat(key, { messages, max_tokens: 16 });
    assert.equal(status, 200, JSON.stringify(body));
    cached.push(body.usage.prompt_tokens_details?.cached_tokens ?? 0);
    messages.push(body.choices[0].message, user("Go on."));
  }
  return cached;
}

async function leadAgents(fleet: WorkerFleet): Promise<{ ids: string[]; ended: Promise<number[][]> }> {
  const tasks = await Promise.all(Array.from({ length: AGENTS }, () => fleet.createTask()));
  const ended = Promise.all(tasks.map(({ id, key }) => leadAgent(fleet, id, key)));
  ended.catch(() => {});
  return { ids: tasks.map(({ id }) => id), ended };
}

/** Every sampled token of these tasks is found again by force-decoding, on a worker that lives. */
async function assertPromise(fleet: WorkerFleet, ids: readonly string[]): Promise<void> {
  const { engine } = fleet.services.models.default;
  for (const id of ids) {
    const { status, body } = await fleet.admin("GET", `/tasks/${id}/result?format=rows`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.rows.length, 1);
    assert.equal(body.rows[0].turns.length, TURNS);
    assert.ok(await checkRowsByForceDecoding(engine, body.rows) > 0);
  }
}

Deno.test("each task stays on the worker whose cache has its series", async () => {
  await using fleet = await startWorkerFleet({ workers: 3 });
  const { ids, ended } = await leadAgents(fleet);
  for (const cached of await ended) {
    for (let turn = 1; turn < TURNS; turn++) assert.ok(cached[turn]! > cached[turn - 1]!, cached.join());
  }
  const turns = (await Promise.all(ids.map((id) => fleet.turns(id)))).flat();
  for (const { parent, cached_tokens, prompt_tokens, observation_tokens } of turns) {
    // All of the turn before but its last token, from which nothing was computed.
    if (parent !== null) assert.equal(cached_tokens, prompt_tokens - observation_tokens - 1);
  }
  await assertPromise(fleet, ids);
});

Deno.test("a worker that dies at work costs its agents nothing but time", async () => {
  await using fleet = await startWorkerFleet({ workers: 3, engine: { tokenDelayMs: 5 } });
  const { ids, ended } = await leadAgents(fleet);
  const victim = fleet.workers.find(({ engine }) => engine.running > 0) ?? fleet.workers[0]!;
  await until("it has work", () => victim.engine.running > 0);
  await victim.served.refuse();
  await ended;
  await assertPromise(fleet, ids);
  const states = await fleet.services.models.default.control.workers(AbortSignal.timeout(10_000));
  assert.deepEqual(states.filter(({ reachable }) => !reachable).map(({ url }) => url), [victim.served.url]);
});

Deno.test("agents outlive the death of all workers, if they come back in time", async () => {
  await using fleet = await startWorkerFleet({
    workers: 3,
    engine: { tokenDelayMs: 5 },
    environment: { ENGINE_RETRY_S: "60" },
  });
  const { ids, ended } = await leadAgents(fleet);
  await until("there is work", () => fleet.running > 0);
  await Promise.all(fleet.workers.map(({ served }) => served.refuse()));
  const circuits = () => fleet.services.models.default.control.workers(AbortSignal.timeout(10_000));
  await until(
    "nobody sends them anything",
    async () => (await circuits()).every(({ circuit }) => circuit !== "closed"),
  );
  for (const { served } of fleet.workers) served.listen();
  await ended;
  await assertPromise(fleet, ids);
});
