/** Answers that were recorded but did not arrive: the same request again means the same answer, no retry header needed. */

import assert from "node:assert/strict";
import { countEngineCalls } from "./engine_calls.ts";
import { type CreatedTask, sharedHarness, user } from "./harness.ts";
import { until } from "./until.ts";

const harness = sharedHarness({ engine: { nullReplyTokens: 100_000 } });

/** Tokens enough for an answer that no socket buffer holds; a streamed one is longer in bytes. */
const CASES = [{ stream: false, tokens: 60_000 }, { stream: true, tokens: 25_000 }];

/** Sends the request and reads nothing of its answer; closes the connection once the turn is recorded. */
async function leaveUnread(task: CreatedTask, body: Record<string, unknown>): Promise<void> {
  const { hostname, port } = new URL(harness().url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const text = JSON.stringify(body);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${task.key}\r\n` +
    `content-length: ${text.length}\r\n\r\n`;
  const writer = connection.writable.getWriter();
  await writer.write(new TextEncoder().encode(head + text));
  writer.releaseLock();
  await until("the turn is recorded", async () => (await harness().task(task.id)).turns === 1);
}

for (const { stream, tokens } of CASES) {
  Deno.test(`an answer that went out in part, ${stream ? "streamed" : "whole"}, is replayed to the same request`, async () => {
    const request = { messages: [user("Hello")], logprobs: true, max_tokens: tokens };
    const task = await harness().createTask();
    await leaveUnread(task, { ...request, stream });
    await until("the answer counts as undelivered", async () => {
      const [turn] = await harness().turns(task.id);
      return turn.delivered === false;
    });
    const calls = countEngineCalls(harness());
    const { status, headers, body } = await harness().chat(task.key, request);
    assert.equal(status, 200);
    assert.equal(headers.get("x-verbatim-turn"), "0");
    assert.equal(body.choices[0].logprobs.content.length, tokens);
    assert.equal(calls(), 0);
    // Now it did arrive: the same request once more is a wish for another sample.
    await until("the answer counts as delivered", async () => (await harness().turns(task.id))[0].delivered === true);
    const again = await harness().chat(task.key, { ...request, logprobs: false });
    assert.equal(again.headers.get("x-verbatim-turn"), "1");
    assert.equal(calls(), 1);
    const turns = await harness().turns(task.id);
    assert.deepEqual(turns.map((turn) => [turn.relation, turn.replays]), [["root", 1], ["retry", 0]]);
  });
}
