/** Tasks that outlive the weights they began with: which turns came too late, and what exports make of them. */

import assert from "node:assert/strict";
import { agentCalls } from "./agent_calls.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, type CreatedTask, sharedHarness, user } from "./harness.ts";

const harness = sharedHarness({ engine: { weightVersion: "1" } });
const { ask, result } = agentCalls(harness);

/** A conversation of which each turn is sampled by the weights of its version. */
async function play(task: CreatedTask, versions: readonly string[]): Promise<Body[]> {
  const said: Body[] = [user("Go")];
  for (const new_version of versions) {
    const { status } = await harness().admin("POST", "/engines/update", { action: "set_version", new_version });
    assert.equal(status, 200);
    const { message } = await ask(task, said, { max_tokens: 5 });
    said.push(message, user("On"));
  }
  return said;
}

const VERSIONS = ["1", "2", "2", "3", "4"];

Deno.test("turns beyond the versions that a task may span are marked, and train nowhere, with the reason", async () => {
  const task = await harness().createTask({ max_version_span: 2 });
  await play(task, VERSIONS);
  const turns = await harness().turns(task.id);
  assert.deepEqual(turns.map((turn) => turn.stale), [false, false, false, true, true]);
  const region = await result(task);
  assert.ok(region.notes.includes("turns_over_max_version_span"));
  const { loss_mask, logprobs, turns: spans, weight_versions } = region.result;
  for (const { start, end, masked, turn } of spans) {
    assert.equal(masked, turn < 3 ? undefined : "version_span");
    assert.ok(end > start);
    assert.ok(loss_mask.slice(start, end).every((bit: number) => bit === (turn < 3 ? 1 : 0)));
    assert.ok(logprobs.slice(start, end).every((logprob: number) => logprob < 0), "what was sampled stays on record");
  }
  assert.deepEqual(weight_versions.map(({ version }: Body) => version), ["1", "2", "3", "4"]);
  const { rows, notes } = await result(task, "?format=rows");
  assert.ok(notes.includes("turns_over_max_version_span"));
  const [row] = rows;
  assert.deepEqual([rows.length, row.loss_mask, row.turns], [1, loss_mask, spans]);
  assert.equal(row.trained_tokens, loss_mask.reduce((sum: number, bit: number) => sum + bit, 0));
  assert.ok(row.sampled_mask.reduce((sum: number, bit: number) => sum + bit, 0) > row.trained_tokens);
  const { samples } = await result(task, "?format=slime");
  assert.deepEqual(samples[0].loss_mask, loss_mask);
  assert.ok(await checkRowsByForceDecoding(harness().development.services.models.default.engine, rows) > 0);
});

Deno.test("max_version_span of a query leaves whole rows out, with the reason", async () => {
  const task = await harness().createTask();
  await play(task, VERSIONS);
  assert.deepEqual((await harness().turns(task.id)).map((turn) => turn.stale), [false, false, false, false, false]);
  const narrow = await result(task, "?format=rows&max_version_span=2");
  assert.deepEqual([narrow.rows, narrow.notes.includes("rows_over_max_version_span")], [[], true]);
  const wide = await result(task, "?format=rows&max_version_span=4");
  assert.deepEqual([wide.rows.length, wide.notes.includes("rows_over_max_version_span")], [1, false]);
  assert.ok(wide.notes.includes("mixed_versions"));
});

Deno.test("a path that begins anew spans its own versions alone", async () => {
  const task = await harness().createTask({ max_version_span: 1, history: "branch" });
  await play(task, ["5", "6"]);
  await ask(task, [user("Something else")], { max_tokens: 5 });
  assert.deepEqual((await harness().turns(task.id)).map((turn) => turn.stale), [false, true, false]);
  const { rows } = await result(task, "?format=rows&roles=main,branch,side");
  const masked = new Map(rows.flatMap((row: Body) => row.turns.map((span: Body) => [span.turn, span.masked])));
  assert.deepEqual([masked.get(0), masked.get(1), masked.get(2)], [undefined, "version_span", undefined]);
});
