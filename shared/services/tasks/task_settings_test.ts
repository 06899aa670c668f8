import assert from "node:assert/strict";
import { CreateTask } from "../../schemas/tasks.ts";
import { taskSettings } from "./task_settings.ts";

function settingsOf(body: unknown): ReturnType<typeof taskSettings> {
  return taskSettings(CreateTask.parse(body));
}

Deno.test("taskSettings of an empty request are the contract's defaults", () => {
  assert.deepEqual(settingsOf({}), {
    groupId: null,
    rolloutId: null,
    parentTaskId: null,
    routingKey: null,
    model: null,
    metadata: {},
    capture: true,
    history: "append_only",
    echo: "lenient",
    onRepeat: "auto",
    reasoningHistory: "keep",
    main: null,
    fixedSampling: {},
    agentMaySet: [],
    trainRoles: ["main", "branch"],
    onAbort: "resume",
    maxVersionSpan: null,
    maxTurns: null,
    maxTotalTokens: null,
    maxContextTokens: null,
  });
});

Deno.test("taskSettings takes every field over", () => {
  const settings = settingsOf({
    task_id: "t",
    group_id: "g",
    rollout_id: 7,
    parent_task_id: "p",
    routing_key: "r",
    model: "m",
    metadata: { a: [1, null] },
    ttl_s: 60,
    max_turns: 1,
    max_total_tokens: 2,
    max_context_tokens: 3,
    capture: true,
    history: "branch",
    echo: "lenient",
    on_repeat: "replay",
    reasoning_history: "keep",
    main: { header: { "x-agent": "main" }, tools_include: "bash", system_includes: "You" },
    sampling: { fixed: { temperature: 0.5, stop: "x" }, agent_may_set: ["top_p"] },
    train_roles: ["side"],
    on_abort: "fail",
    max_version_span: 4,
    score: "off",
    capture_extras: [],
  });
  assert.deepEqual(settings, {
    groupId: "g",
    rolloutId: 7,
    parentTaskId: "p",
    routingKey: "r",
    model: "m",
    metadata: { a: [1, null] },
    capture: true,
    history: "branch",
    echo: "lenient",
    onRepeat: "replay",
    reasoningHistory: "keep",
    main: { header: { "x-agent": "main" }, toolsInclude: "bash", systemIncludes: "You" },
    fixedSampling: { temperature: 0.5, stop: ["x"] },
    agentMaySet: ["top_p"],
    trainRoles: ["side"],
    onAbort: "fail",
    maxVersionSpan: 4,
    maxTurns: 1,
    maxTotalTokens: 2,
    maxContextTokens: 3,
  });
});

Deno.test("taskSettings takes echoes strictly under branch, unless told otherwise", () => {
  assert.equal(settingsOf({ history: "branch" }).echo, "strict");
  assert.equal(settingsOf({ history: "append_only", echo: "strict" }).echo, "strict");
  assert.deepEqual(settingsOf({ main: { tools_include: "t" } }).main, { toolsInclude: "t" });
});

Deno.test("taskSettings takes each extra once, and nothing where none is wanted", () => {
  const cut = { sampling: { fixed: { top_p: 0.9 } } };
  const asked = ["top_p_ids", "routed_experts", "top_p_ids"];
  assert.deepEqual(settingsOf({ ...cut, capture_extras: asked }).captureExtras, ["routed_experts", "top_p_ids"]);
  assert.equal("captureExtras" in settingsOf({}), false);
});

Deno.test("taskSettings refuses extras that there are not, and those that would say nothing", () => {
  for (
    const [fields, reason] of [
      [{ capture_extras: ["hidden_states"] }, /no extra "hidden_states"/],
      [{ capture_extras: ["routed_experts"], capture: false }, /without capture/],
      [{ capture_extras: ["top_p_ids"] }, /top_p is below 1/],
      [{ capture_extras: ["top_p_ids"], sampling: { fixed: { top_p: 1 } } }, /top_p is below 1/],
    ] as const
  ) {
    assert.throws(() => settingsOf(fields), (thrown: { code: string; details: Record<string, string> }) => {
      assert.deepEqual([thrown.code, thrown.details.field], ["unsupported", "capture_extras"]);
      assert.match(thrown.details.reason!, reason);
      return true;
    });
  }
});

Deno.test("taskSettings keeps that turns are scored as they come, where there are turns", () => {
  assert.equal(settingsOf({ score: "per_turn" }).score, "per_turn");
  assert.equal("score" in settingsOf({ score: "off" }), false);
  assert.throws(() => settingsOf({ score: "per_turn", capture: false }), { code: "unsupported" });
});

Deno.test("taskSettings keeps which turns are the teacher's, where there are turns", () => {
  assert.equal("rollin" in settingsOf({}), false);
  assert.deepEqual(settingsOf({ rollin: { beta: 0.25, seed: -3 } }).rollin, { kind: "mixture", beta: 0.25, seed: -3 });
  assert.deepEqual(settingsOf({ rollin: { prefix_turns: 0 } }).rollin, { kind: "prefix", turns: 0 });
  assert.deepEqual(settingsOf({ rollin: { prefix_turns: 2, seed: 1 } }).rollin, { kind: "prefix", turns: 2 });
  assert.throws(() => settingsOf({ rollin: { prefix_turns: 1 }, capture: false }), {
    code: "unsupported",
    details: { field: "rollin", reason: "without capture nobody knows whose turn it is" },
  });
});

Deno.test("taskSettings refuses budgets that nothing would count", () => {
  for (const budget of ["max_turns", "max_total_tokens"]) {
    assert.throws(() => settingsOf({ capture: false, [budget]: 1 }), { code: "unsupported" });
  }
});
