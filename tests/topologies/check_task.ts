/** A task at its end, as its trainer checks it: valid, what the agent heard, and every exported token found again. */

import assert from "node:assert/strict";
import type { Engine } from "../../shared/ports/engine.ts";
import { checkRowsByForceDecoding } from "../e2e/force_decode.ts";
import type { Answered, Body } from "../e2e/gateway_client.ts";
import { scoringEngine } from "../e2e/recorded_plays.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";

/** A call of an own endpoint, with whatever key it needs. */
export type Admin = (method: string, path: string, body?: unknown) => Promise<Answered>;

/** A worker that is asked directly, past gateway and router. */
export async function workerAt(url: string): Promise<Engine> {
  return scoringEngine(url, await qwen3Tokenizer());
}

/** What is known of a task beside its record. */
export interface TaskAtItsEnd {
  readonly id: string;
  readonly reward: number;
  /** The ids of each answer, where the agent was told them. */
  readonly heard?: readonly (readonly number[])[];
}

/** Finishes the task and checks it; the region. */
export async function finishAndCheck(admin: Admin, worker: Engine, task: TaskAtItsEnd): Promise<Body> {
  const { id, reward, heard } = task;
  const { status, body: region } = await admin("POST", `/tasks/${id}/finish`, { reward });
  assert.deepEqual([status, region.reason, region.reward], [200, null, reward], JSON.stringify(region));
  const { completion_token_ids: ids, turns } = region.result;
  if (heard !== undefined) assert.deepEqual(turns.map(({ start, end }: Body) => ids.slice(start, end)), heard);
  const { body: { rows } } = await admin("GET", `/tasks/${id}/result?format=rows`);
  assert.ok(await checkRowsByForceDecoding(worker, rows) > 0);
  return region;
}
