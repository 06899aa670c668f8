/** Raw requests of the dialects that have SDKs of their own, and what must hold of a task that was worked on in them. */

import assert from "node:assert/strict";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import type { Answered, Body, CreatedTask, Harness } from "./harness.ts";
import { type NamedEvents, readNamedEvents } from "./named_events.ts";

/** How a request is sent. */
export interface Sending {
  readonly path: string;
  readonly headers?: Record<string, string>;
}

const ANTHROPIC = { "anthropic-version": "2023-06-01", "anthropic-beta": "some-2025-01-01" };

/** An answer, not streamed. */
export async function post(
  harness: Harness,
  key: string,
  body: Record<string, unknown>,
  { path, headers = {} }: Sending,
): Promise<Answered> {
  const auth = path.includes("/messages") ? { "x-api-key": key, ...ANTHROPIC } : { authorization: `Bearer ${key}` };
  return await harness.admin("POST", path, body, { ...auth, ...headers });
}

/** An answer's body; the call must succeed. */
export async function ask(
  harness: Harness,
  key: string,
  body: Record<string, unknown>,
  sending: Sending,
): Promise<Body> {
  const { status, body: answer } = await post(harness, key, body, sending);
  assert.equal(status, 200, JSON.stringify(answer));
  return answer;
}

/** A streamed answer, read to its end. */
export async function stream(
  harness: Harness,
  key: string,
  body: Record<string, unknown>,
  { path, headers = {} }: Sending,
): Promise<NamedEvents> {
  const response = await fetch(harness.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({ ...body, stream: true }),
  });
  return await readNamedEvents(response);
}

/**
 * The task's requests were one line of appends with these echoes, its capture is one row, and the engine finds every
 * sampled token's logprob again after the tokens before it. Finishes the task.
 */
export async function assertOneSeries(harness: Harness, task: CreatedTask, echoes: readonly string[]): Promise<void> {
  const decisions = await harness.decisions(task.id);
  assert.deepEqual(decisions.map(({ relation, echo, verdict }) => [relation, echo, verdict]), [
    ["root", null, "ok"],
    ...echoes.map((echo) => ["append", echo, "ok"]),
  ]);
  await harness.admin("POST", `/tasks/${task.id}/finish`, { reward: 1 });
  const { body: rows } = await harness.admin("GET", `/tasks/${task.id}/result?format=rows`);
  assert.deepEqual([rows.reason, rows.rows.length], [null, 1]);
  const { engine } = harness.development.services.models.default;
  assert.equal(
    await checkRowsByForceDecoding(engine, rows.rows),
    (await harness.task(task.id)).tokens.completion,
  );
}
