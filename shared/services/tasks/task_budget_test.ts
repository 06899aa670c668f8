import assert from "node:assert/strict";
import { makeTask } from "../../../tests/contracts/store_fixtures.ts";
import type { TaskRecord } from "../../core/task.ts";
import { assertTurnLeft, tokensInBudget } from "./task_budget.ts";

function taskOf(limits: Partial<TaskRecord["settings"]>, used: Partial<TaskRecord> = {}): TaskRecord {
  const task = makeTask(used);
  return { ...task, settings: { ...task.settings, ...limits } };
}

Deno.test("assertTurnLeft counts committed turns and calls in flight", () => {
  const task = taskOf({ maxTurns: 3 }, { turns: 1 });
  assertTurnLeft(task, 0);
  assertTurnLeft(task, 1);
  assert.throws(() => assertTurnLeft(task, 2), {
    code: "budget_exceeded",
    retryable: false,
    details: { budget: "max_turns", limit: 3, used: 3 },
  });
  assertTurnLeft(taskOf({}, { turns: 1e6 }), 1e6);
});

Deno.test("tokensInBudget leaves what prompts and completions have not used, at least one token", () => {
  const used = { promptTokens: 50, completionTokens: 20 };
  assert.equal(tokensInBudget(taskOf({ maxTotalTokens: 100 }, used), 20), 10);
  assert.equal(tokensInBudget(taskOf({ maxTotalTokens: 100 }, used), 29), 1);
  assert.throws(() => tokensInBudget(taskOf({ maxTotalTokens: 100 }, used), 30), {
    code: "budget_exceeded",
    retryable: false,
    details: { budget: "max_total_tokens", limit: 100, used: 100 },
  });
  assert.equal(tokensInBudget(taskOf({}, used), 1e9), null);
});
