/** Weight updates under a load of agents: none of them sees an error, and no sampled token is lost or misnamed. */

import assert from "node:assert/strict";
import { seededRandom } from "../fixtures/seeded_random.ts";
import type { Body } from "./gateway_client.ts";
import { user } from "./harness.ts";
import { joinChunks } from "./join_chunks.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";
import { type CheckedTokens, checkRowAcrossVersions } from "./versions_check.ts";
import { startWorkerFleet, weightsOf, type WorkerFleet } from "./worker_fleet.ts";

const AGENTS = 64;

/** The trainer's cycle. */
async function update(fleet: WorkerFleet, version: string, mode: string): Promise<void> {
  await fleet.update({ action: "pause", mode });
  // A cache can't be flushed under requests that are only frozen or put back.
  await fleet.update({ action: "update_from_disk", model_path: weightsOf(version), flush_cache: mode === "abort" });
  await fleet.update({ action: "set_version", new_version: version, abort_all_requests: false });
  await fleet.update({ action: "continue" });
}

/** One streamed turn; it must end well. */
async function turnOf(fleet: WorkerFleet, key: string, messages: readonly Body[]): Promise<Body> {
  const stream = await fleet.stream(key, { messages, max_tokens: 48 });
  const frames = await stream.rest();
  assert.deepEqual([stream.status, stream.end], [200, "done"], JSON.stringify(frames.at(-1)));
  return joinChunks(frames).message;
}

async function rowOf(fleet: WorkerFleet, id: string): Promise<Body> {
  const { body } = await fleet.admin("GET", `/tasks/${id}/result?format=rows`);
  assert.equal(body.reason, null, JSON.stringify(body));
  assert.equal(body.rows.length, 1);
  return body.rows[0];
}

for (const mode of ["abort", "retract", "in_place"]) {
  Deno.test(`a weight update by ${mode} goes through ${AGENTS} streams that are under way: each goes on where it was`, async () => {
    const gate = new TokenGate();
    await using fleet = await startWorkerFleet({
      workers: 3,
      engine: { ...gate.engine, random: seededRandom(3).unit },
    });
    const { gate: entrance } = fleet.services.models.default.generations;
    gate.close();
    const tasks = await Promise.all(Array.from({ length: AGENTS }, () => fleet.createTask()));
    let ended = 0;
    const answers = Promise.all(tasks.map(async ({ key }, k) => {
      const message = await turnOf(fleet, key, [user(`Begin, ${k}`)]);
      ended++;
      return message;
    }));
    answers.catch(() => {});
    const STEPS = 6;
    for (let step = 0; step <= STEPS; step++) {
      await until("every stream waits for a token, or has ended", () => gate.waiting + ended === AGENTS);
      if (step < STEPS) gate.step();
    }
    const underWay = AGENTS - ended;
    assert.ok(underWay > AGENTS / 2);
    await fleet.update({ action: "pause", mode });
    if (mode === "abort") await until("every stream is outside", () => entrance.waiting === underWay);
    gate.open();
    await fleet.update({ action: "update_from_disk", model_path: weightsOf("2"), flush_cache: mode === "abort" });
    await fleet.update({ action: "set_version", new_version: "2", abort_all_requests: false });
    await fleet.update({ action: "continue" });
    const messages = await answers;
    assert.deepEqual([entrance.running, entrance.waiting, fleet.running], [0, 0, 0]);
    const totals = { sampled: 0, exact: 0 };
    let across = 0;
    for (const [k, { id }] of tasks.entries()) {
      const [turn] = await fleet.turns(id);
      const row = await rowOf(fleet, id);
      add(totals, await checkRowAcrossVersions(fleet, row));
      const segments = row.weight_versions.map(({ version, start, exact }: Body) => [version, start, exact]);
      assert.equal(typeof messages[k]!.content, "string");
      if (turn.completion_tokens <= STEPS) continue;
      across++;
      assert.equal(turn.resumed, mode === "abort" ? 1 : 0);
      if (mode === "abort") assert.deepEqual(segments, [["1", 0, true], ["2", STEPS, true]]);
      else assert.deepEqual(segments.map(([version]: Body) => version), ["1", "2"]);
    }
    assert.equal(across, underWay);
    assert.ok(totals.sampled > underWay * STEPS, JSON.stringify(totals));
    if (mode === "abort") assert.equal(totals.exact, totals.sampled);
  });
}

Deno.test("what waits in the engines' queues at a pause waits outside, and is the new weights' alone", async () => {
  const gate = new TokenGate();
  await using fleet = await startWorkerFleet({ workers: 2, engine: { ...gate.engine, maxRunningRequests: 3 } });
  const { gate: entrance } = fleet.services.models.default.generations;
  gate.close();
  const tasks = await Promise.all(Array.from({ length: 12 }, () => fleet.createTask()));
  const answers = Promise.all(tasks.map(({ key }, k) => turnOf(fleet, key, [user(`Begin, ${k}`)])));
  answers.catch(() => {});
  await until("all are at the engines, some in their queues", () => fleet.running === 12);
  assert.ok(fleet.workers.some(({ engine }) => engine.queued > 0));
  await fleet.update({ action: "pause" });
  await until("all wait outside", () => entrance.waiting === 12 && entrance.running === 0);
  gate.open();
  await fleet.update({ action: "update_from_disk", model_path: weightsOf("2"), weight_version: "2" });
  await fleet.update({ action: "continue" });
  await answers;
  for (const { id } of tasks) {
    const row = await rowOf(fleet, id);
    await checkRowAcrossVersions(fleet, row);
    assert.deepEqual(row.weight_versions.map(({ version, exact }: Body) => [version, exact]), [["2", true]]);
    assert.equal((await fleet.turns(id))[0].resumed, 0);
  }
});

Deno.test(`${AGENTS} agents play on through updates of every kind; all their tokens are found again under their weights`, async () => {
  const random = seededRandom(11);
  await using fleet = await startWorkerFleet({
    workers: 3,
    engine: { tokenDelayMs: 1, random: random.unit, maxRunningRequests: 16 },
    environment: { ENGINE_MAX_CONCURRENCY: "40" },
  });
  let playing = AGENTS;
  const play = async (k: number): Promise<string> => {
    const { id, key } = await fleet.createTask();
    const messages: Body[] = [user(`Begin, ${k}`)];
    for (let turn = 0; turn < 3; turn++) messages.push(await turnOf(fleet, key, messages), user("And now?"));
    playing--;
    return id;
  };
  const agents = Array.from({ length: AGENTS }, (_, k) => play(k));
  const all = Promise.all(agents);
  all.catch(() => {});
  const modes: string[] = [];
  for (let version = 2; playing > 0 && version <= 9; version++) {
    const mode = ["abort", "retract", "in_place"][version % 3]!;
    modes.push(mode);
    await update(fleet, String(version), mode);
    await Promise.race([all, until("some tokens were sampled", () => fleet.running > 8 || playing === 0)]);
  }
  const ids = await all;
  const totals = { sampled: 0, exact: 0 };
  const versions = new Set<string>();
  let resumed = 0;
  for (const id of ids) {
    const row = await rowOf(fleet, id);
    add(totals, await checkRowAcrossVersions(fleet, row));
    for (const { version } of row.weight_versions) versions.add(version);
    for (const turn of await fleet.turns(id)) resumed += turn.resumed;
  }
  assert.ok(modes.length >= 3 && versions.size >= 3, `${modes} ${[...versions]}`);
  assert.ok(resumed > 0, "some went on after an abort");
  assert.ok(totals.exact > totals.sampled / 2, JSON.stringify(totals));
});

function add(totals: { sampled: number; exact: number }, checked: CheckedTokens): void {
  totals.sampled += checked.sampled;
  totals.exact += checked.exact;
}
