/** Clients that hang up: the engine is told to stop, nothing is recorded, and the same request then works as if nothing had been. */

import assert from "node:assert/strict";
import type { Fault } from "../../shared/engine/fault.ts";
import { type Body, type CreatedTask, sharedHarness, user } from "./harness.ts";
import { until } from "./until.ts";

const harness = sharedHarness({
  environment: { ENGINE_RETRY_S: "60" },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you, and a good day.", "Good again."] }] } },
});

const hello = { messages: [user("Hello")] };

/** A task with one turn, and the request that goes on from it. */
async function begun(): Promise<CreatedTask & { next: { messages: Body[] } }> {
  const task = await harness().createTask();
  const { body } = await harness().chat(task.key, hello);
  return { ...task, next: { messages: [...hello.messages, body.choices[0].message, user("More")] } };
}

/** A call, and how to hang up on it. */
function call(key: string, body: Record<string, unknown>, headers: Record<string, string> = {}): {
  ended: Promise<unknown>;
  hangUp: () => void;
} {
  const hangUp = new AbortController();
  const ended = fetch(`${harness().url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
    signal: hangUp.signal,
  }).then((response) => response.text(), (cause) => cause);
  return { ended, hangUp: () => hangUp.abort() };
}

/** Nothing came of the call: one turn as before; the request again is a normal append to it. */
async function assertRetryAppends(task: CreatedTask, next: Record<string, unknown>): Promise<void> {
  await harness().engineIdle();
  harness().development.engine.faults.clear();
  await until("no call is in flight", async () => (await harness().task(task.id)).in_flight === 0);
  assert.equal((await harness().task(task.id)).turns, 1);
  const { status, headers, body } = await harness().chat(task.key, next, { "x-stainless-retry-count": "1" });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.choices[0].message.content, "Good again.");
  assert.equal(headers.get("x-verbatim-turn"), "1");
  const [, turn, ...more] = await harness().turns(task.id);
  assert.deepEqual([turn.relation, turn.parent, turn.echo, more.length], ["retry", 0, null, 0]);
  const { body: finished } = await harness().admin("POST", `/tasks/${task.id}/finish`, {});
  assert.equal(finished.reason, null);
  assert.equal(finished.result.turns.length, 2);
}

/** The first would abort on a disconnect by itself; the second goes on until it is told by id, the third misses that once. */
const ENGINES: readonly (readonly [what: string, faults: (tokens: number) => Fault[]])[] = [
  ["an attentive engine", (afterTokens) => [{ kind: "hang", afterTokens }]],
  ["an engine that outlives its client", (afterTokens) => [{ kind: "zombie", afterTokens }]],
  [
    "an engine that misses the first abort",
    (afterTokens) => [{ kind: "zombie", afterTokens }, { kind: "deaf", aborts: 1 }],
  ],
];

for (const [what, faults] of ENGINES) {
  Deno.test(`a client that hangs up before its answer frees ${what}`, async () => {
    const task = await begun();
    for (const fault of faults(2)) harness().development.engine.faults.add({ fault });
    const { ended, hangUp } = call(task.key, task.next);
    await harness().engineRuns(1);
    hangUp();
    await ended;
    await assertRetryAppends(task, task.next);
  });

  Deno.test(`a client that hangs up before the first token of its stream frees ${what}`, async () => {
    const task = await begun();
    for (const fault of faults(0)) harness().development.engine.faults.add({ fault });
    const { ended, hangUp } = call(task.key, { ...task.next, stream: true });
    await harness().engineRuns(1);
    hangUp();
    await ended;
    await assertRetryAppends(task, task.next);
  });

  Deno.test(`a client that hangs up after some deltas frees ${what}`, async () => {
    const task = await begun();
    for (const fault of faults(2)) harness().development.engine.faults.add({ fault });
    const stream = await harness().stream(task.key, task.next);
    let text = "";
    while (text === "") text += (await stream.next()).choices[0].delta.content;
    await harness().engineRuns(1);
    stream.hangUp();
    await assertRetryAppends(task, task.next);
  });
}

Deno.test("a client that hangs up while a dead engine is tried again ends the tries", async () => {
  const task = await begun();
  const { served } = harness().development;
  await served.refuse();
  const { ended, hangUp } = call(task.key, task.next);
  await until("the call is in flight", async () => (await harness().task(task.id)).in_flight === 1);
  hangUp();
  await ended;
  await until("the call is gone", async () => (await harness().task(task.id)).in_flight === 0);
  served.listen();
  await assertRetryAppends(task, task.next);
});

Deno.test("a generation that two clients wait for goes on when one of them hangs up", async () => {
  const task = await begun();
  harness().development.engine.faults.add({ fault: { kind: "delay", tokenMs: 20 } });
  const retry = { "x-stainless-retry-count": "1" };
  const first = await harness().stream(task.key, task.next, retry);
  const second = await harness().stream(task.key, task.next, retry);
  first.hangUp();
  const frames = await second.rest();
  harness().development.engine.faults.clear();
  assert.equal(second.end, "done");
  assert.equal(frames.map((frame) => frame.choices[0]?.delta.content ?? "").join(""), "Good again.");
  assert.equal((await harness().task(task.id)).turns, 2);
});

Deno.test("a generation that two clients wait for is aborted when both have hung up", async () => {
  const task = await begun();
  harness().development.engine.faults.add({ fault: { kind: "zombie", afterTokens: 1 } });
  const retry = { "x-stainless-retry-count": "1" };
  const first = await harness().stream(task.key, task.next, retry);
  const second = await harness().stream(task.key, task.next, retry);
  assert.deepEqual(await first.next(), await second.next());
  await harness().engineRuns(1);
  first.hangUp();
  second.hangUp();
  await assertRetryAppends(task, task.next);
});

Deno.test("a client of generate that hangs up, whole or streamed, frees the engine", async () => {
  for (const stream of [false, true]) {
    harness().development.engine.faults.add({ fault: { kind: "zombie", afterTokens: 1 } });
    const hangUp = new AbortController();
    const ended = fetch(`${harness().url}/generate`, {
      method: "POST",
      body: JSON.stringify({ input_ids: [9707], stream }),
      signal: hangUp.signal,
    }).then((response) => response.text()).catch((cause) => cause);
    await harness().engineRuns(1);
    hangUp.abort();
    await ended;
    await harness().engineIdle();
    harness().development.engine.faults.clear();
  }
});
