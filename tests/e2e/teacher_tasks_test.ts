/** `POST /teacher-score/tasks`: stored rows are scored once, kept, and carried by every form of the result. */

import assert from "node:assert/strict";
import { type Body, type Harness, startHarness, user } from "./harness.ts";
import { readSafetensors, startTaught, type TaughtHarness } from "./teacher.ts";
import { until } from "./until.ts";

let taught: TaughtHarness;
let gateway: Harness;

Deno.test.beforeAll(async () => {
  taught = await startTaught();
  gateway = taught.gateway;
  // It changes nothing; its hits count the requests that score.
  taught.teacher.engine.faults.add({ when: { scoring: true }, fault: { kind: "delay", firstTokenMs: 0 } });
});
Deno.test.afterAll(async () => {
  await taught[Symbol.asyncDispose]();
});

function asked(): number {
  return taught.teacher.engine.faults.list()[0]!.hits;
}

/** A task of so many turns in one conversation, finished. */
async function play(body: Record<string, unknown>, options: { turns: number; finish?: Body }): Promise<string> {
  const task = await gateway.createTask(body);
  const messages: Body[] = [user(`say: hello ${crypto.randomUUID()}`)];
  for (let turn = 0; turn < options.turns; turn++) {
    const { status, body: reply } = await gateway.chat(task.key, { messages, max_tokens: 8 });
    assert.equal(status, 200, JSON.stringify(reply));
    messages.push(reply.choices[0].message, user(`go on ${turn}`));
  }
  if (options.finish !== undefined) {
    const { status } = await gateway.admin("POST", `/tasks/${task.id}/finish`, options.finish);
    assert.equal(status, 200);
  }
  return task.id;
}

/** The lines of one run, the summary last. */
async function run(body: Record<string, unknown>): Promise<{ lines: Body[]; summary: Body }> {
  const response = await fetch(`${gateway.url}/teacher-score/tasks`, { method: "POST", body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "application/x-ndjson");
  const lines = (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
  return { lines: lines.slice(0, -1), summary: lines.at(-1) };
}

async function result(id: string, query = ""): Promise<Body> {
  const { status, body } = await gateway.admin("GET", `/tasks/${id}/result${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

Deno.test("teacher-score/tasks keeps a row's scores beside its tokens, and the result carries them", async () => {
  const id = await play({}, { turns: 3, finish: { reward: 1 } });
  const before = asked();
  const { lines, summary } = await run({ task_ids: [id], top_k: 5 });
  const { result: region } = await result(id);
  const sampled = region.loss_mask.reduce((sum: number, bit: number) => sum + bit, 0);
  assert.deepEqual(lines, [{ task_id: id, status: "scored", turns: 3, tokens: sampled, already: 0 }]);
  assert.deepEqual(summary, {
    done: true,
    tasks: 1,
    scored: 1,
    skipped: 0,
    failed: 0,
    turns: 3,
    tokens: sampled,
    teacher: { model: "teacher", weight_version: "t1" },
  });
  assert.equal(asked() - before, 1, "all turns of a row are one call");

  const direct = await gateway.admin("POST", "/teacher-score", {
    prompt_ids: region.prompt_token_ids,
    response_ids: region.completion_token_ids,
    mask: region.loss_mask,
    top_k: 5,
  });
  for (const name of ["teacher_log_probs", "teacher_topk_indices", "teacher_topk_logprobs", "tail_mass"]) {
    assert.deepEqual(region[name], direct.body[name], name);
  }
  assert.equal(region.teacher, "teacher@t1");
  assert.ok(region.loss_mask.includes(0));

  const again = await run({ task_ids: [id, id], top_k: 5 });
  assert.deepEqual(again.lines, [{ task_id: id, status: "scored", turns: 0, tokens: 0, already: 3 }]);
  assert.equal(asked() - before, 2, "what is scored is not scored again");
  const wider = await run({ task_ids: [id], top_k: 7 });
  assert.deepEqual([wider.lines[0].turns, wider.lines[0].already], [3, 0]);
  assert.equal((await result(id)).result.teacher_topk_indices.find((row: unknown) => row !== null).length, 7);
});

Deno.test("teacher-score/tasks scores what a task has gained since, after what it has", async () => {
  const task = await gateway.createTask({});
  const messages: Body[] = [user("say: one")];
  for (let turn = 0; turn < 2; turn++) {
    const { body } = await gateway.chat(task.key, { messages, max_tokens: 8 });
    messages.push(body.choices[0].message, user("more"));
    const { lines } = await run({ task_ids: [task.id], top_k: 2 });
    assert.deepEqual([lines[0].turns, lines[0].already], [1, turn]);
  }
  const { result: region } = await result(task.id);
  const direct = await gateway.admin("POST", "/teacher-score", {
    prompt_ids: region.prompt_token_ids,
    response_ids: region.completion_token_ids,
    mask: region.loss_mask,
    top_k: 2,
  });
  assert.deepEqual(region.teacher_log_probs, direct.body.teacher_log_probs);
});

Deno.test("rows, tensors and slime's samples carry the scores", async () => {
  const id = await play({ metadata: { label: "42" }, group_id: "forms" }, { turns: 2, finish: { reward: 0.5 } });
  await run({ group_id: "forms", top_k: 3 });
  const { rows: [row] } = await result(id, "?format=rows");
  const { samples: [sample], rollout_id } = await result(id, "?format=slime");
  const zero = (name: string, empty: unknown) => row[name].map((value: unknown) => value ?? empty);
  assert.equal(row.teacher_log_probs.length, row.response_length);
  assert.ok(row.teacher_log_probs.every((value: unknown, k: number) => (value === null) === (row.loss_mask[k] === 0)));
  assert.deepEqual(sample.teacher_log_probs, zero("teacher_log_probs", 0));
  assert.deepEqual(sample.teacher_topk_indices, zero("teacher_topk_indices", [0, 0, 0]));
  assert.deepEqual(sample.teacher_topk_logprobs, zero("teacher_topk_logprobs", [0, 0, 0]));
  const { tokens, response_length, loss_mask, logprobs, response } = row;
  assert.deepEqual(
    [sample.tokens, sample.response_length, sample.loss_mask, sample.rollout_log_probs, sample.response],
    [tokens, response_length, loss_mask, logprobs, response],
  );
  assert.deepEqual(
    [sample.status, sample.reward, sample.label, sample.rollout_id, sample.metadata.task_id],
    [row.truncated ? "truncated" : "completed", 0.5, "42", rollout_id, id],
  );
  assert.deepEqual(sample.weight_versions, ["default"]);

  for (const [query, prefix] of [["", ""], ["?format=rows", "row.0."]]) {
    const answer = await fetch(`${gateway.url}/tasks/${id}/result${query}`, {
      headers: { accept: "application/x-safetensors" },
    });
    const { tensors, metadata } = readSafetensors(new Uint8Array(await answer.arrayBuffer()));
    const plain = prefix === "" ? (await result(id)).result : row;
    assert.deepEqual(tensors[`${prefix}loss_mask`]!.values, plain.loss_mask);
    assert.deepEqual(tensors[`${prefix}logprobs`]!.values, plain.logprobs);
    const all = prefix === "" ? [...plain.prompt_token_ids, ...plain.completion_token_ids] : plain.tokens;
    const parts = prefix === ""
      ? [...tensors.prompt_token_ids!.values, ...tensors.completion_token_ids!.values]
      : tensors["row.0.tokens"]!.values;
    assert.deepEqual(parts, all);
    assert.deepEqual(tensors[`${prefix}teacher_topk_indices`]!.shape, [response_length, 3]);
    assert.deepEqual(tensors[`${prefix}scored_mask`]!.values, loss_mask);
    const rest = JSON.parse(metadata.verbatim!);
    assert.equal(rest.task_id, id);
    assert.deepEqual(prefix === "" ? rest.result.turns : rest.rows[0].turns, plain.turns);
    assert.equal("tokens" in (rest.rows?.[0] ?? {}), false);
  }
});

Deno.test("teacher-score/tasks spends nothing on what its filters leave out", async () => {
  const good = await play({ group_id: "filters" }, { turns: 1, finish: { reward: 1, outcome: "completed" } });
  const bad = await play({ group_id: "filters" }, { turns: 1, finish: { reward: 0, outcome: "completed" } });
  const infra = await play({ group_id: "filters" }, { turns: 1, finish: { reward: 1, outcome: "infra" } });
  const open = await play({ group_id: "filters" }, { turns: 1 });
  const none = await play({ group_id: "filters" }, { turns: 0, finish: { reward: 1, outcome: "completed" } });
  const before = asked();
  const only = { outcomes: ["completed"], min_reward: 0.5 };
  const { lines, summary } = await run({ group_id: "filters", only });
  const statuses = Object.fromEntries(lines.map((line) => [line.task_id, line.reason ?? line.status]));
  assert.deepEqual(statuses, {
    [good]: "scored",
    [bad]: "reward",
    [infra]: "outcome",
    [open]: "outcome",
    [none]: "nothing was generated",
  });
  assert.deepEqual([summary.scored, summary.skipped, asked() - before], [1, 4, 1]);
  const sides = await run({ task_ids: [good], only: { roles: ["side"] } });
  assert.equal(sides.lines[0].status, "skipped");
});

Deno.test("teacher-score/tasks fails loudly and goes on where it stopped", async () => {
  const ids: string[] = [];
  for (let task = 0; task < 8; task++) ids.push(await play({ group_id: "fails" }, { turns: 1 }));
  const missing = await run({ task_ids: ["nobody", ids[0]!] });
  assert.deepEqual([missing.lines[0].status, missing.lines[0].error.code], ["failed", "task_not_found"]);
  assert.equal(missing.summary.done, true);

  const { faults } = taught.teacher.engine;
  faults.clear();
  faults.add({ when: { scoring: true }, fault: { kind: "delay", firstTokenMs: 0 } });
  faults.add({ when: { scoring: true }, fault: { kind: "input_logprobs", problem: "short" } });
  const broken = await run({ group_id: "fails" });
  assert.equal(broken.summary.done, false);
  const failed = broken.lines.filter(({ status }) => status === "failed");
  assert.ok(failed.length > 0 && failed.every(({ error }) => error.code === "teacher_failed"));
  assert.ok(asked() <= 5 * 3, "it gives up, and does not fail task by task");
  faults.clear();
  faults.add({ when: { scoring: true }, fault: { kind: "delay", firstTokenMs: 0 } });
  const again = await run({ group_id: "fails" });
  assert.deepEqual([again.summary.done, again.summary.turns, asked()], [true, 7, 7]);
});

Deno.test("teacher-score/tasks refuses what names no tasks", async () => {
  for (const body of [{}, { task_ids: [] }, { task_ids: ["a"], group_id: "b" }, { group_id: "b", top_k: 2000 }]) {
    const { status, body: answer } = await gateway.admin("POST", "/teacher-score/tasks", body);
    assert.deepEqual([status, answer.error.code], [400, "invalid_request"], JSON.stringify(body));
  }
});

Deno.test("score per_turn scores each turn while the agent's tool runs", async () => {
  const before = asked();
  const id = await play({ score: "per_turn" }, { turns: 3 });
  await until("every turn is scored", async () => "teacher_log_probs" in (await result(id)).result);
  const { result: region } = await result(id);
  const direct = await gateway.admin("POST", "/teacher-score", {
    prompt_ids: region.prompt_token_ids,
    response_ids: region.completion_token_ids,
    mask: region.loss_mask,
  });
  assert.deepEqual(region.teacher_log_probs, direct.body.teacher_log_probs);
  assert.equal(asked() - before, 3 + 1, "each turn once");
  await gateway.admin("DELETE", `/tasks/${id}`);
});

Deno.test("score per_turn needs a teacher", async () => {
  await using plain = await startHarness();
  const { status, body } = await plain.admin("POST", "/tasks", { score: "per_turn" });
  assert.deepEqual([status, body.error.code, body.error.details.field], [400, "unsupported", "score"]);
});
