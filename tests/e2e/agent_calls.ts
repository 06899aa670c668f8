/** Calls of agents and what trainers read of them, in few words. */

import assert from "node:assert/strict";
import type { Body, CreatedTask, GatewayClient } from "./gateway_client.ts";

/** What an agent got. */
export interface Got {
  readonly message: Body;
  readonly ids: number[];
  readonly turn: number;
}

/** Calls that must succeed. */
export interface AgentCalls {
  /** A chat completion, with the ids that were sampled. */
  ask(
    task: CreatedTask,
    messages: readonly Body[],
    fields?: Record<string, unknown>,
    headers?: Record<string, string>,
  ): Promise<Got>;
  /** A task's result as it stands. */
  result(task: CreatedTask, query?: string): Promise<Body>;
}

/** Calls to a file's shared gateway. */
export function agentCalls(harness: () => GatewayClient): AgentCalls {
  return {
    async ask({ key }, messages, fields = {}, headers = {}) {
      const answer = await harness().chat(key, { messages, return_token_ids: true, ...fields }, headers);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      const [choice] = answer.body.choices;
      return { message: choice.message, ids: choice.token_ids, turn: Number(answer.headers.get("x-verbatim-turn")) };
    },
    async result({ id }, query = "") {
      const { status, body } = await harness().admin("GET", `/tasks/${id}/result${query}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    },
  };
}

/** The sampled ids that a region trains, by turn. */
export function trained(region: Body): number[][] {
  assert.equal(region.reason, null);
  const { completion_token_ids: ids, loss_mask: mask, turns } = region.result;
  return turns.map(({ start, end }: Body) => {
    assert.ok(mask.slice(start, end).every((bit: number) => bit === 1));
    return ids.slice(start, end);
  });
}
