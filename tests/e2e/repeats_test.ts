/** The same request again: a retry gets the same answer, a wish for another sample gets another. */

import assert from "node:assert/strict";
import { countEngineCalls } from "./engine_calls.ts";
import type { EventStream } from "./event_stream.ts";
import { type Answered, type Body, sharedHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { until } from "./until.ts";

const harness = sharedHarness({
  engine: {
    script: {
      rules: [
        { match: "Call it", completions: [think("A call.") + "I call it. 😀\n" + toolCall("run", { path: "a b" })] },
      ],
    },
  },
});

const RETRY = { "x-stainless-retry-count": "1" };
/** Free sampling: two samples differ but for chance. */
const request = { messages: [user("Say something")], max_tokens: 12, return_token_ids: true };

function idsOf({ body }: Answered): number[] {
  return body.choices[0].token_ids;
}

function turnOf({ headers }: Answered): string | null {
  return headers.get("x-verbatim-turn");
}

/** Slows the engine down, so that two requests meet in flight; what they get is the same where they do not. */
function holdEngine(): () => void {
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "delay", firstTokenMs: 150 } });
  return () => faults.clear();
}

Deno.test("two identical requests at once that say they are retries are one engine call and two equal answers", async () => {
  const { key, id } = await harness().createTask();
  const calls = countEngineCalls(harness());
  const release = holdEngine();
  const [first, second] = await Promise.all([
    harness().chat(key, request, RETRY),
    harness().chat(key, request, RETRY),
  ]);
  assert.equal(calls(), 1);
  release();
  assert.deepEqual(first.body, second.body);
  assert.deepEqual([turnOf(first), turnOf(second)], ["0", "0"]);
  const [turn, ...more] = await harness().turns(id);
  assert.equal(more.length, 0);
  // Both were answered: the one that joined is a replay like any other.
  await until("the replay is noted", async () => (await harness().turns(id))[0].replays === 1);
  assert.equal(turn.relation, "root");
  assert.deepEqual((await harness().decisions(id)).map((decision) => decision.verdict), ["ok", "replay"]);
});

Deno.test("two identical streams at once that say they are retries are one engine call and two equal streams", async () => {
  const { key, id } = await harness().createTask();
  const calls = countEngineCalls(harness());
  const release = holdEngine();
  const streams = await Promise.all([
    harness().stream(key, request, RETRY),
    harness().stream(key, request, RETRY),
  ]);
  const [first, second] = await Promise.all(streams.map((stream) => stream.rest()));
  assert.equal(calls(), 1);
  release();
  assert.deepEqual(first, second);
  assert.deepEqual(streams.map((stream) => stream.end), ["done", "done"]);
  assert.equal((await harness().turns(id)).length, 1);
});

Deno.test("a stream and a whole answer of one retried request are one engine call", async () => {
  const { key } = await harness().createTask();
  const calls = countEngineCalls(harness());
  const release = holdEngine();
  const [stream, whole] = await Promise.all([
    harness().stream(key, request, RETRY),
    harness().chat(key, request, RETRY),
  ]);
  const frames = await stream.rest();
  assert.equal(calls(), 1);
  release();
  assert.deepEqual(frames.at(-1).choices[0].token_ids, idsOf(whole));
  assert.equal(frames.at(-1).verbatim.turn, 0);
  assert.equal(frames[0].id, whole.body.id);
});

Deno.test("two identical requests at once without a retry header are two samples, siblings", async () => {
  const { key, id } = await harness().createTask();
  const calls = countEngineCalls(harness());
  const release = holdEngine();
  const answers = await Promise.all([harness().chat(key, request), harness().chat(key, request)]);
  assert.equal(calls(), 2);
  release();
  assert.deepEqual(answers.map(turnOf).sort(), ["0", "1"]);
  assert.notDeepEqual(idsOf(answers[0]!), idsOf(answers[1]!));
  assert.notEqual(answers[0]!.body.id, answers[1]!.body.id);
  const turns = await harness().turns(id);
  assert.deepEqual(turns.map((turn) => turn.parent), [null, null]);
  assert.deepEqual(turns.map((turn) => turn.relation), ["root", "retry"]);
});

Deno.test("the same request after a delivered answer is a new sample", async () => {
  const { key, id } = await harness().createTask();
  const first = await harness().chat(key, request);
  const second = await harness().chat(key, request);
  assert.deepEqual([turnOf(first), turnOf(second)], ["0", "1"]);
  assert.notDeepEqual(idsOf(first), idsOf(second));
  const { capture } = await harness().task(id);
  assert.equal(capture.valid, true);
  const [, again] = await harness().decisions(id);
  assert.deepEqual([again.relation, again.related_to, again.verdict], ["retry", 0, "replay"]);
});

Deno.test("the same request with a retry header after a delivered answer is answered with it again", async () => {
  const { key, id } = await harness().createTask();
  const first = await harness().chat(key, request);
  const calls = countEngineCalls(harness());
  const second = await harness().chat(key, request, RETRY);
  assert.equal(calls(), 0);
  assert.deepEqual(second.body, first.body);
  assert.equal(turnOf(second), "0");
  const [turn, ...more] = await harness().turns(id);
  assert.deepEqual([turn.replays, more.length], [1, 0]);
  const [, replay] = await harness().decisions(id);
  assert.deepEqual(
    [replay.request, replay.turn, replay.relation, replay.verdict, replay.effect],
    [1, 0, "retry", "replay", "answered with turn 0 again"],
  );
});

Deno.test("a retry header of zero is no retry", async () => {
  const { key } = await harness().createTask();
  const header = { "x-stainless-retry-count": "0" };
  const answers = [await harness().chat(key, request, header), await harness().chat(key, request, header)];
  assert.deepEqual(answers.map(turnOf), ["0", "1"]);
});

Deno.test("a retry of a request that was sampled twice gets the later answer", async () => {
  const { key } = await harness().createTask();
  await harness().chat(key, request);
  const second = await harness().chat(key, request);
  const again = await harness().chat(key, request, RETRY);
  assert.deepEqual(again.body, second.body);
});

Deno.test("a request whose limit differs is another request, retry header or not", async () => {
  const { key } = await harness().createTask();
  await harness().chat(key, request);
  const other = await harness().chat(key, { ...request, max_tokens: 11 }, RETRY);
  assert.equal(turnOf(other), "1");
});

Deno.test("on_repeat replay answers the same request with the same answer, header or not", async () => {
  const { key } = await harness().createTask({ on_repeat: "replay" });
  const first = await harness().chat(key, request);
  const second = await harness().chat(key, request);
  assert.deepEqual(second.body, first.body);
  assert.deepEqual([turnOf(first), turnOf(second)], ["0", "0"]);
});

Deno.test("on_repeat resample samples anew, header or not", async () => {
  const { key } = await harness().createTask({ on_repeat: "resample" });
  const first = await harness().chat(key, request);
  const second = await harness().chat(key, request, RETRY);
  assert.deepEqual([turnOf(first), turnOf(second)], ["0", "1"]);
  assert.notDeepEqual(idsOf(first), idsOf(second));
});

/** What a stream said, put together as its whole answer would be. */
async function joined(stream: EventStream): Promise<Body> {
  const frames = await stream.rest();
  const message: Body = { role: "assistant", content: "" };
  for (const frame of frames) {
    const delta = frame.choices[0]?.delta ?? {};
    if (delta.content) message.content += delta.content;
    if (delta.reasoning_content) {
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
    }
    for (const { index, ...call } of delta.tool_calls ?? []) (message.tool_calls ??= [])[index] = call;
  }
  const last = frames.at(-1);
  return {
    id: last.id,
    message,
    finish_reason: last.choices[0].finish_reason,
    token_ids: last.choices[0].token_ids,
    turn: last.verbatim.turn,
  };
}

function wholeOf(answer: Answered): Body {
  const [choice] = answer.body.choices;
  return {
    id: answer.body.id,
    message: choice.message,
    finish_reason: choice.finish_reason,
    token_ids: choice.token_ids,
    turn: Number(turnOf(answer)),
  };
}

const calling = { messages: [user("Call it")], tools: [tool("run", ["path"])], return_token_ids: true };

Deno.test("a streamed answer is replayed as JSON with the same ids", async () => {
  const { key } = await harness().createTask();
  const streamed = await joined(await harness().stream(key, calling));
  assert.equal(streamed.finish_reason, "tool_calls");
  assert.deepEqual(wholeOf(await harness().chat(key, calling, RETRY)), streamed);
});

Deno.test("an answer in JSON is replayed as a stream with the same ids", async () => {
  const { key } = await harness().createTask();
  const whole = wholeOf(await harness().chat(key, calling));
  assert.match(whole.message.content, /😀/);
  assert.deepEqual(await joined(await harness().stream(key, calling, RETRY)), whole);
});

Deno.test("a replay goes on to be a normal parent: its echo is an append to the one turn", async () => {
  const { key, id } = await harness().createTask();
  await harness().chat(key, request);
  const replayed = await harness().chat(key, request, RETRY);
  await harness().chat(key, {
    messages: [...request.messages, replayed.body.choices[0].message, user("More")],
    max_tokens: 3,
  });
  const turns = await harness().turns(id);
  assert.deepEqual(turns.map((turn) => [turn.relation, turn.parent]), [["root", null], ["append", 0]]);
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.equal(body.reason, null);
  assert.equal(body.result.turns.length, 2);
});

Deno.test("a failed call is not repeated: the retry is sampled", async () => {
  const { key } = await harness().createTask();
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "http", status: 500, body: "no", contentType: "text/plain" } });
  const failed = await harness().chat(key, request, RETRY);
  faults.clear();
  assert.equal(failed.status, 502);
  assert.equal(turnOf(await harness().chat(key, request, RETRY)), "0");
});
