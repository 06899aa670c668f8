/** What must hold after an engine's failure: nothing was recorded, and the same request works once the engine does. */

import assert from "node:assert/strict";
import type { Body, CreatedTask, Harness } from "./harness.ts";

/** Checks both, with a request that is a root of its task, and that the capture is then valid and holds one turn. */
export async function assertUnharmed(
  harness: Harness,
  task: CreatedTask,
  request: Record<string, unknown>,
): Promise<void> {
  const before = await harness.task(task.id);
  assert.equal(before.turns, 0);
  assert.deepEqual(before.tokens, { prompt: 0, completion: 0 });
  assert.equal(before.in_flight, 0);
  const { status, body } = await harness.chat(task.key, request, { "x-stainless-retry-count": "1" });
  assert.equal(status, 200, JSON.stringify(body));
  const [turn, ...more] = await harness.turns(task.id);
  assert.deepEqual([turn.relation, turn.parent, more.length], ["retry", null, 0]);
  const { body: finished } = await harness.admin("POST", `/tasks/${task.id}/finish`, { reward: 1 });
  assert.equal(finished.reason, null);
  assertOneTurn(finished.result, turn);
}

function assertOneTurn(result: Body, turn: Body): void {
  assert.equal(result.completion_token_ids.length, turn.completion_tokens);
  assert.ok(result.loss_mask.every((mask: number) => mask === 1));
  assert.ok(result.logprobs.every((logprob: number) => Number.isFinite(logprob) && logprob <= 0));
}
