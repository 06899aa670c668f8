/** A task's budgets: turns and tokens. Time is the task's expiry. */

import { VerbatimError } from "../../core/errors.ts";
import type { TaskRecord } from "../../core/task.ts";

/** Refuses a call that would be a turn too many. `running` counts the task's other calls in flight. */
export function assertTurnLeft(task: TaskRecord, running: number): void {
  const { maxTurns } = task.settings;
  if (maxTurns !== null && task.turns + running >= maxTurns) {
    throw exceeded("max_turns", maxTurns, task.turns + running);
  }
}

/** Tokens that may still be sampled after this prompt, or null where there is no limit. None left is `budget_exceeded`. */
export function tokensInBudget(task: TaskRecord, promptTokens: number): number | null {
  const { maxTotalTokens } = task.settings;
  if (maxTotalTokens === null) return null;
  const used = task.promptTokens + task.completionTokens;
  const left = maxTotalTokens - used - promptTokens;
  if (left < 1) throw exceeded("max_total_tokens", maxTotalTokens, used + promptTokens);
  return left;
}

function exceeded(budget: string, limit: number, used: number): VerbatimError {
  return new VerbatimError("budget_exceeded", `The task's budget ${budget} of ${limit} is used up`, {
    details: { budget, limit, used },
  });
}
