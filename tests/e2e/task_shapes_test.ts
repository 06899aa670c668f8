/** The shapes of what a trainer reads of a task: every field that is promised, as it is promised. */

import assert from "node:assert/strict";
import { type Body, sharedHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { until } from "./until.ts";

const harness = sharedHarness({
  engine: {
    script: {
      rules: [{ match: "Work", completions: [think("Hm.") + toolCall("run", { path: "x" }), "Done.", "Again."] }],
    },
  },
});

const request = { messages: [user("Work")], tools: [tool("run", ["path"])] };

/** A task of two turns: a call, its result, a last word. */
async function worked(): Promise<{ id: string; key: string; messages: Body[] }> {
  const task = await harness().createTask({ group_id: "g" });
  const first = await harness().chat(task.key, { ...request, user: "me" });
  const { message } = first.body.choices[0];
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "it ran" };
  const messages = [...request.messages, message, result];
  await harness().chat(task.key, { ...request, messages });
  await until("both answers are noted", async () => {
    return (await harness().turns(task.id)).every((turn) => turn.delivered === true);
  });
  return { ...task, messages };
}

Deno.test("GET turns lists every turn with every promised field", async () => {
  const { id } = await worked();
  const [first, second] = await harness().turns(id);
  const RAW = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, penalties: false, constrained: false };
  const fixed: Body = {
    turn: 0,
    parent: null,
    relation: "root",
    related_to: null,
    echo: null,
    role: "main",
    tools_changed: false,
    finish_reason: "tool_calls",
    parse: { status: "ok", problems: [] },
    basis: RAW,
    ignored_fields: ["user"],
    actor: "policy",
    delivered: true,
    adopted: true,
    superseded: false,
    replays: 0,
  };
  for (const [name, value] of Object.entries(fixed)) assert.deepEqual(first[name], value, name);
  assert.equal(typeof first.stop, "number");
  assert.equal(first.observation_tokens, first.prompt_tokens);
  assert.deepEqual(first.weight_versions, [{
    version: "default",
    start: 0,
    end: first.completion_tokens,
    exact: true,
  }]);
  assert.deepEqual(first.sampling.stop_token_ids, [first.stop]);
  assert.equal(first.sampling.temperature, 1);
  for (const name of ["engine_ms", "wait_ms", "duration_ms", "cached_tokens"]) {
    assert.ok(Number.isFinite(first[name]) && first[name] >= 0, name);
  }
  assert.ok(Math.abs(Date.parse(first.started_at) - Date.now()) < 600_000);

  const after: Body = {
    turn: 1,
    parent: 0,
    relation: "append",
    related_to: 0,
    echo: "exact",
    role: "main",
    finish_reason: "stop",
    ignored_fields: [],
    adopted: false,
    superseded: false,
  };
  for (const [name, value] of Object.entries(after)) assert.deepEqual(second[name], value, name);
  assert.equal(second.prompt_tokens, first.prompt_tokens + first.completion_tokens + second.observation_tokens);
  assert.ok(second.cached_tokens >= first.prompt_tokens);
});

Deno.test("GET explain gives one decision an answered request, with every promised field", async () => {
  const { id, key } = await worked();
  await harness().chat(key, request, { "x-stainless-retry-count": "1" });
  const { status, body } = await harness().admin("GET", `/tasks/${id}/explain`);
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body), ["verdicts", "decisions"]);
  assert.equal(body.verdicts, "provisional");
  const none = { at: null, stored: null, received: null };
  assert.deepEqual(body.decisions.slice(0, 2), [
    {
      request: 0,
      turn: 0,
      related_to: null,
      relation: "root",
      echo: null,
      ...none,
      verdict: "ok",
      effect: "began a path, its prompt rendered whole",
    },
    {
      request: 1,
      turn: 1,
      related_to: 0,
      relation: "append",
      echo: "exact",
      reasoning: "kept",
      ...none,
      verdict: "ok",
      effect: "extended the series of turn 0",
    },
  ]);
  const [, , replay] = body.decisions;
  assert.deepEqual(
    [replay.request, replay.turn, replay.relation, replay.related_to, replay.effect],
    [2, 0, "retry", 0, "answered with turn 0 again"],
  );
  await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.equal((await harness().admin("GET", `/tasks/${id}/explain`)).body.verdicts, "final");
});

Deno.test("GET explain does not number failed calls, and tells their retry from a new request", async () => {
  const { id, key } = await harness().createTask();
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "http", status: 500, body: "no", contentType: "text/plain" } });
  assert.equal((await harness().chat(key, request)).status, 502);
  faults.clear();
  assert.equal((await harness().chat(key, request)).status, 200);
  const [decision, ...more] = await harness().decisions(id);
  assert.deepEqual([decision.request, decision.turn, more.length], [0, 0, 0]);
  assert.equal(decision.related_to, null);
  assert.deepEqual([decision.relation, decision.verdict], ["retry", "replay"]);
  assert.equal((await harness().task(id)).capture.valid, true);
});

Deno.test("GET result as region has the promised shape", async () => {
  const { id } = await worked();
  const { body } = await harness().admin("GET", `/tasks/${id}/result`);
  assert.deepEqual(Object.keys(body).sort(), [
    "cause",
    "group_id",
    "metadata",
    "notes",
    "other_rows",
    "outcome",
    "reason",
    "result",
    "reward",
    "rollout_id",
    "status",
    "task_id",
  ]);
  const { result } = body;
  assert.equal(result.finish_reason, "stop");
  const [first, second] = result.turns;
  for (const turn of [first, second]) {
    for (const name of ["turn", "start", "end", "finish_reason", "stop", "parse", "basis", "actor", "cached_tokens"]) {
      assert.ok(name in turn, name);
    }
  }
  assert.deepEqual([first.finish_reason, second.finish_reason], ["tool_calls", "stop"]);
  assert.ok(result.weight_versions.every((part: Body) => part.version === "default" && part.exact === true));
  assert.deepEqual(Object.keys(result.weight_versions[0]).sort(), ["end", "exact", "start", "version"]);
  assert.deepEqual((await harness().admin("GET", `/tasks/${id}/result?format=region`)).body, body);
});

Deno.test("GET result as rows has the promised shape", async () => {
  const { id } = await worked();
  await harness().admin("POST", `/tasks/${id}/finish`, { outcome: "truncated", reward: 0.5 });
  const { body } = await harness().admin("GET", `/tasks/${id}/result?format=rows`);
  assert.deepEqual([body.reward, body.outcome, body.reason], [0.5, "truncated", null]);
  const [row, ...more] = body.rows;
  assert.equal(more.length, 0);
  assert.deepEqual(Object.keys(row).sort(), [
    "logprobs",
    "loss_mask",
    "path",
    "prompt_length",
    "response",
    "response_length",
    "role",
    "rollout_id",
    "rows_in_rollout",
    "sampled_mask",
    "tokens",
    "trained_tokens",
    "trained_tokens_in_rollout",
    "truncated",
    "turns",
    "weight_versions",
  ]);
  assert.deepEqual([row.role, row.path, row.truncated, row.rollout_id], ["main", [0, 1], true, id]);
  const region = await harness().admin("GET", `/tasks/${id}/result`);
  assert.deepEqual(row.tokens.slice(0, row.prompt_length), region.body.result.prompt_token_ids);
  assert.deepEqual(row.tokens.slice(row.prompt_length), region.body.result.completion_token_ids);
  assert.deepEqual(row.logprobs, region.body.result.logprobs);
  assert.deepEqual(row.loss_mask, region.body.result.loss_mask);
});
