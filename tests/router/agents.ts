/** Agents of several turns behind a router, and what holds of them at the end. */

import assert from "node:assert/strict";
import { checkRowsByForceDecoding } from "../e2e/force_decode.ts";
import { type Body, type CreatedTask, user } from "../e2e/harness.ts";
import type { Heard } from "../e2e/retrying_agent.ts";
import type { RoutedGateway, RoutedWorker } from "./routed_gateway.ts";

/** One answer and what led to it. */
export interface RoutedTurn {
  readonly promptIds: readonly number[];
  readonly ids: readonly number[];
  /** As the engine reported it with this answer. */
  readonly cachedTokens: number;
  readonly worker: RoutedWorker;
}

/** A conversation as an agent leads it: it asks, takes the answer into its history, and asks again. */
export class RoutedAgent {
  readonly messages: Body[];

  private constructor(readonly task: CreatedTask, first: string) {
    this.messages = [user(first)];
  }

  /** With a task of its own. */
  static async open(gateway: RoutedGateway, first: string, fields: Record<string, unknown> = {}): Promise<RoutedAgent> {
    return new RoutedAgent(await gateway.createTask(fields), first);
  }

  /** The next request. */
  get request(): Record<string, unknown> {
    return { messages: this.messages, max_tokens: 24, return_token_ids: true, logprobs: true };
  }

  /** Takes an answer and goes on from it. */
  hear(message: Body): void {
    this.messages.push(message, user("Go on."));
  }

  /** One turn, which must succeed at once. */
  async turn(gateway: RoutedGateway): Promise<RoutedTurn> {
    const { status, body } = await gateway.chat(this.task.key, this.request);
    assert.equal(status, 200, JSON.stringify(body));
    this.hear(body.choices[0].message);
    return {
      promptIds: body.prompt_token_ids,
      ids: body.choices[0].token_ids,
      cachedTokens: body.usage.prompt_tokens_details?.cached_tokens ?? 0,
      worker: gateway.workerOf(body.prompt_token_ids),
    };
  }

  /** So many turns, one after the other. */
  async turns(gateway: RoutedGateway, count: number): Promise<RoutedTurn[]> {
    const turns: RoutedTurn[] = [];
    while (turns.length < count) turns.push(await this.turn(gateway));
    return turns;
  }
}

/** A turn's worker had all of the turn before: only the last sampled token is never in a cache. */
export function assertCached(turns: readonly RoutedTurn[]): void {
  for (const [index, turn] of turns.entries()) {
    const before = turns[index - 1];
    if (before === undefined) continue;
    const known = before.promptIds.length + before.ids.length - 1;
    assert.ok(turn.cachedTokens >= known, `turn ${index}: ${turn.cachedTokens} of ${known} tokens were cached`);
  }
}

/** Finishes the task; its capture is valid and every exported token is found again. The region. */
export async function assertPromise(gateway: RoutedGateway, { id }: CreatedTask): Promise<Body> {
  const { body: region } = await gateway.admin("POST", `/tasks/${id}/finish`, { reward: 1 });
  assert.equal(region.reason, null);
  const { body: rows } = await gateway.admin("GET", `/tasks/${id}/result?format=rows`);
  const sampled = await checkRowsByForceDecoding(gateway.engine, rows.rows);
  assert.ok(sampled > 0);
  return region;
}

/** What an agent was told is what is exported, turn by turn. */
export function assertHeard(region: Body, heard: readonly Heard[]): void {
  const { completion_token_ids: ids, turns } = region.result;
  assert.deepEqual(
    turns.map(({ start, end }: Body) => ids.slice(start, end)),
    heard.map((answer) => answer.ids),
  );
}
