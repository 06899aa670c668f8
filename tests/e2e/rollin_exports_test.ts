/** Tasks with turns of the teacher's, as trainers read them: what the policy sampled and what the teacher decided, apart. */

import assert from "node:assert/strict";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, type CreatedTask, type Harness, user } from "./harness.ts";
import { play, startActors, TOOLS } from "./rollin_play.ts";
import { readSafetensors, type TaughtHarness } from "./teacher.ts";
import { until } from "./until.ts";

let taught: TaughtHarness;
let gateway: Harness;

Deno.test.beforeAll(async () => {
  taught = await startActors();
  gateway = taught.gateway;
});
Deno.test.afterAll(async () => {
  await taught[Symbol.asyncDispose]();
});

async function result(task: CreatedTask, query = ""): Promise<Body> {
  const { status, body } = await gateway.admin("GET", `/tasks/${task.id}/result${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** A task whose first turns are the teacher's, finished. */
async function played(body: Record<string, unknown>, turns = 4): Promise<CreatedTask> {
  const task = await gateway.createTask({ rollin: { prefix_turns: 2 }, ...body });
  await play(taught, task, { turns });
  await gateway.admin("POST", `/tasks/${task.id}/finish`, { reward: 1 });
  return task;
}

async function score(task: CreatedTask): Promise<Body[]> {
  const response = await fetch(`${gateway.url}/teacher-score/tasks`, {
    method: "POST",
    body: JSON.stringify({ task_ids: [task.id], top_k: 3 }),
  });
  return (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
}

function sum(mask: readonly number[]): number {
  return mask.reduce((total, bit) => total + bit, 0);
}

/** The mask that is 1 in these spans. */
function maskOf(length: number, spans: readonly Body[]): number[] {
  return Array.from({ length }, (_, k) => spans.some(({ start, end }) => start <= k && k < end) ? 1 : 0);
}

/** What the masks and logprobs of a region or row say, span by span. */
function assertApart(part: Body, sampled: readonly number[]): void {
  const length = part.logprobs.length;
  const by = (actor: string) => part.turns.filter((turn: Body) => turn.actor === actor);
  assert.deepEqual(part.turns.map(({ actor }: Body) => actor), ["teacher", "teacher", "policy", "policy"]);
  assert.deepEqual(part.ce_mask, maskOf(length, by("teacher")));
  assert.deepEqual(part.loss_mask, maskOf(length, by("policy")));
  assert.deepEqual(sampled, part.loss_mask);
  part.logprobs.forEach((logprob: number, k: number) => assert.equal(logprob === 0, sampled[k] === 0));
  for (const { start, end } of part.weight_versions) {
    assert.ok(!part.ce_mask.slice(start, end).includes(1), "no weights of the policy are the teacher's");
  }
}

Deno.test("region and rows tell the teacher's tokens from the policy's, and only the policy's train by policy loss", async () => {
  const task = await played({});
  const { result: region, notes } = await result(task);
  assertApart(region, region.loss_mask);
  assert.deepEqual(notes, [], "one policy, one basis, one version");
  const { rows: [row, ...more] } = await result(task, "?format=rows");
  assert.equal(more.length, 0);
  assertApart(row, row.sampled_mask);
  assert.equal(row.ce_mask.length, row.response_length);
  assert.deepEqual([row.trained_tokens, row.trained_tokens_in_rollout], [sum(row.loss_mask), sum(row.loss_mask)]);
  const { engine } = gateway.development.services.models.default;
  assert.equal(await checkRowsByForceDecoding(engine, [row]), sum(row.loss_mask));
});

Deno.test("tasks without roll-in have no ce_mask", async () => {
  const task = await gateway.createTask();
  await play(taught, task, { turns: 1 });
  assert.equal("ce_mask" in (await result(task)).result, false);
  assert.equal("ce_mask" in (await result(task, "?format=rows")).rows[0], false);
  assert.equal("ce_mask" in (await result(task, "?format=slime")).samples[0], false);
});

Deno.test("safetensors carry the ce_mask as bytes", async () => {
  const task = await played({});
  for (const [query, prefix] of [["", ""], ["?format=rows", "row.0."]] as const) {
    const answer = await fetch(`${gateway.url}/tasks/${task.id}/result${query}`, {
      headers: { accept: "application/x-safetensors" },
    });
    const { tensors } = readSafetensors(new Uint8Array(await answer.arrayBuffer()));
    const plain = prefix === "" ? (await result(task)).result : (await result(task, query)).rows[0];
    const { dtype, values } = tensors[`${prefix}ce_mask`]!;
    assert.deepEqual([dtype, values], ["U8", plain.ce_mask]);
  }
});

Deno.test("a teacher's turn trains once, in the first row that has it", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 }, history: "branch" });
  const messages = await play(taught, task, { turns: 2 });
  for (const word of ["left", "right"]) {
    const { status } = await gateway.chat(task.key, { messages: [...messages, user(`${word} step 2`)], tools: TOOLS });
    assert.equal(status, 200);
  }
  const { rows } = await result(task, "?format=rows");
  assert.equal(rows.length, 2);
  const [first] = rows[0].turns;
  assert.equal(first.actor, "teacher");
  assert.deepEqual(rows.map((row: Body) => sum(row.ce_mask)), [first.end - first.start, 0]);
  const { rows: none } = await result(task, "?format=rows&roles=side");
  assert.deepEqual(none, []);
});

Deno.test("scoring leaves the teacher's own turns out, and per_turn does too", async () => {
  const task = await played({});
  const [line, summary] = await score(task);
  const { result: region } = await result(task);
  assert.deepEqual([line.turns, line.tokens, summary.done], [2, sum(region.loss_mask), true]);
  region.teacher_log_probs.forEach((value: unknown, k: number) => {
    assert.equal(value === null, region.loss_mask[k] === 0);
  });
  const direct = await gateway.admin("POST", "/teacher-score", {
    prompt_ids: region.prompt_token_ids,
    response_ids: region.completion_token_ids,
    mask: region.loss_mask,
    top_k: 3,
  });
  assert.deepEqual(region.teacher_log_probs, direct.body.teacher_log_probs);

  const scored = await played({ score: "per_turn" });
  await until("the policy's turns are scored", async () => "teacher_log_probs" in (await result(scored)).result);
  assert.equal((await score(scored))[0].turns, 2, "with another K: the policy's two turns");
});

Deno.test("slime's samples carry the ce_mask, and on request the sentinel where it is 1", async () => {
  const task = await played({});
  const unscored = await result(task, "?format=slime");
  assert.deepEqual([unscored.samples.length, unscored.samples[0].teacher_log_probs], [1, null]);
  const asked = await result(task, "?format=slime&ce_sentinel=true");
  assert.deepEqual([asked.samples, asked.reason], [[], "ce_sentinel: not every row is scored"]);

  await score(task);
  const { samples: [plain] } = await result(task, "?format=slime");
  const { samples: [marked] } = await result(task, "?format=slime&ce_sentinel=true");
  const { rows: [row] } = await result(task, "?format=rows");
  assert.deepEqual([plain.ce_mask, plain.loss_mask], [row.ce_mask, row.loss_mask]);
  assert.ok(plain.teacher_log_probs.every((value: number) => value <= 0));
  assert.deepEqual(
    marked.teacher_log_probs,
    plain.teacher_log_probs.map((value: number, k: number) => row.ce_mask[k] === 1 ? 1 : value),
  );
  const { teacher_log_probs: _, ...rest } = marked;
  const { teacher_log_probs: __, ...others } = plain;
  assert.deepEqual(rest, others, "nothing else is another");
  assert.equal(marked.spec_info.completion_token_num, sum(row.loss_mask), "what the policy sampled");
  const unmarked = await result(task, "?format=slime&ce_sentinel=false");
  assert.deepEqual(unmarked.samples, [plain]);
});

Deno.test("a row that is the teacher's alone is a sample for the sentinel, and for nothing else", async () => {
  const task = await played({}, 2);
  const { samples, reason } = await result(task, "?format=slime");
  assert.deepEqual([samples, reason], [[], "nothing trains"]);
  const { samples: [sample] } = await result(task, "?format=slime&ce_sentinel=true");
  assert.equal(sum(sample.loss_mask), 0);
  assert.deepEqual(sample.teacher_log_probs, sample.ce_mask);
  const { result: region, reason: none } = await result(task);
  assert.deepEqual([none, sum(region.loss_mask), sum(region.ce_mask)], [null, 0, sum(sample.ce_mask)]);
  assert.deepEqual((await score(task))[0], { task_id: task.id, status: "scored", turns: 0, tokens: 0, already: 0 });
});

Deno.test("only the slime form has the sentinel", async () => {
  const task = await played({}, 1);
  for (const query of ["?ce_sentinel=true", "?format=rows&ce_sentinel=true", "?format=slime&ce_sentinel=1"]) {
    const { status, body } = await gateway.admin("GET", `/tasks/${task.id}/result${query}`);
    assert.deepEqual([status, body.error.code, body.error.details.field], [400, "invalid_request", "ce_sentinel"]);
  }
});

Deno.test("relabel pairs the teacher's turns like any other", async () => {
  const task = await played({}, 3);
  const response = await fetch(`${gateway.url}/teacher-score/relabel`, {
    method: "POST",
    body: JSON.stringify({ task_ids: [task.id], tools: TOOLS }),
  });
  const lines = (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.slice(0, -1).map(({ turn }) => turn), [0, 1, 2]);
  const { result: region } = await result(task);
  const [first] = region.turns;
  assert.deepEqual(lines[0].target_ids, region.completion_token_ids.slice(first.start, first.end));
});

Deno.test("the metrics count turns by who acted", async () => {
  await played({}, 3);
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  assert.match(text, /verbatim_turns_by_actor_total\{actor="teacher"\} [1-9]/);
  assert.match(text, /verbatim_turns_by_actor_total\{actor="policy"\} [1-9]/);
});
