/** OpenAI Responses as a stream: the sequence of events, equal to the whole answer however the tokens came, and its faults. */

import assert from "node:assert/strict";
import { ask, post, stream } from "./dialect_client.ts";
import { EventStream } from "./event_stream.ts";
import { type Body, type Harness, sharedHarness, startHarness } from "./harness.ts";
import { joinResponse, type NamedEvents, typesOf } from "./named_events.ts";
import { think, toolCall } from "./replies.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const REPLIES: Readonly<Record<string, string>> = {
  Everything: think("First 🧭 I look.\nThen I call.") + "I look around. 👀\n" +
    toolCall("look", { at: 'a "é"\n' }) + "\n" + toolCall("run", { path: "漢字" }),
  Plain: "Hello to you, and a good day.",
  Emoji: "Fine 👩‍👩‍👧‍👦 work: 🇩🇪 naïve 東京 🤷🏽‍♀️!",
  Thought: think("Only a thought."),
  Wordless: toolCall("look", { at: "x" }),
  Between: "Before.\n" + toolCall("look", { at: "x" }) + "\nBetween.\n" + toolCall("run", { path: "y" }) + "\nAfter.",
  Spoiled: 'Here: <tool_call>\n{"name": "look", "arguments": {"at": }\n</tool_call> that was it.',
  Stopped: "One two three STOP four five.",
};

const script = { rules: Object.entries(REPLIES).map(([match, reply]) => ({ match, completions: [reply] })) };

const harness = sharedHarness({
  environment: { ENGINE_RETRY_S: "0" },
  engine: { ...gate.engine, script },
});

const TOOLS = ["look", "run"].map((name) => ({ type: "function", name, parameters: { type: "object" } }));
const RESPONSES = { path: "/v1/responses" };
const RETRY = { ...RESPONSES, headers: { "x-stainless-retry-count": "1" } };

function request(input: string): Record<string, unknown> {
  return { model: "m", tools: TOOLS, input };
}

function streamed(key: string, body: Record<string, unknown>): Promise<NamedEvents> {
  return stream(harness(), key, body, RESPONSES);
}

const MESSAGE = [
  "response.output_item.added",
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
];
const CALL = [
  "response.output_item.added",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.output_item.done",
];

Deno.test("a stream is exactly this sequence of events", async () => {
  const { key } = await harness().createTask();
  const { status, events, end } = await streamed(key, request("Everything"));
  assert.deepEqual([status, end], [200, "closed"]);
  assert.deepEqual(typesOf(events), [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.content_part.done",
    "response.output_item.done",
    ...MESSAGE,
    ...CALL,
    ...CALL,
    "response.completed",
  ]);
  assert.deepEqual(events.at(-1).verbatim, { turn: 0 });
  assert.equal(joinResponse(events).status, "completed");
  assert.ok(events.filter((event) => event.type === "response.reasoning_text.delta").length > 3, "reasoning flows");
  assert.ok(events.filter((event) => event.type === "response.output_text.delta").length > 2, "text flows");
});

Deno.test("reasoning comes as a summary where the client asks for one", async () => {
  const { key } = await harness().createTask();
  const { events } = await streamed(key, { ...request("Everything"), reasoning: { summary: "auto" } });
  assert.deepEqual(typesOf(events).slice(2, 8), [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
  ]);
  assert.deepEqual(joinResponse(events).output[0].summary, [{
    type: "summary_text",
    text: "First 🧭 I look.\nThen I call.",
  }]);
});

/** What of a response must be the same in every answer to one request. */
function comparable({ id: _id, created_at: _at, output, usage, ...response }: Body): Body {
  const { input_tokens_details: _cached, ...counts } = usage;
  return { ...response, counts, output: output.map(({ id: _item, call_id: _call, ...item }: Body) => item) };
}

for (const incremental of [true, false]) {
  for (const streamInterval of [1, 2, 5, 1000]) {
    const how = `${streamInterval} token(s) a frame, ${incremental ? "deltas" : "cumulative"}`;
    Deno.test(`streams join to the whole answer: ${how}`, async () => {
      await using served = await startHarness({ engine: { script, streamInterval, incremental } });
      for (const text of Object.keys(REPLIES)) {
        for (
          const more of [
            {},
            { stop: ["STOP"] },
            { max_output_tokens: 9 },
            { tool_choice: "none" },
            { reasoning: { summary: "detailed" }, include: ["reasoning.encrypted_content"] },
          ]
        ) {
          const { key } = await served.createTask({ on_repeat: "resample" });
          const body = { ...request(text), ...more };
          const whole = await ask(served, key, body, RESPONSES);
          const { events, end } = await stream(served, key, body, RESPONSES);
          assert.equal(end, "closed");
          assert.deepEqual(
            withoutEncrypted(comparable(joinResponse(events))),
            withoutEncrypted(comparable(whole)),
            `${text} ${JSON.stringify(more)}`,
          );
        }
      }
    });
  }
}

/** It stands for the item's id. */
function withoutEncrypted(response: Body): Body {
  return { ...response, output: response.output.map(({ encrypted_content: _own, ...item }: Body) => item) };
}

/** Opens a stream of the plain reply and leaves it to be read event by event. */
async function open(served: Harness, key: string): Promise<EventStream> {
  return await EventStream.open(`${served.url}/v1/responses`, {
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...request("Plain"), stream: true }),
  });
}

Deno.test("text leaves as it is sampled; the end leaves after the turn is recorded", async () => {
  const { key, id } = await harness().createTask();
  gate.close();
  const opening = open(harness(), key);
  await until("the engine has the call", () => gate.waiting === 1);
  gate.step();
  const events = await opening;
  const seen: Body[] = [];
  while (seen.at(-1)?.type !== "response.output_text.delta") seen.push(await events.next());
  assert.equal(seen.at(-1).delta, "Hello");
  await until("the engine waits for the second token", () => gate.waiting === 1);
  assert.equal((await harness().task(id)).turns, 0);
  gate.open();
  while (seen.at(-1)?.type !== "response.completed") seen.push(await events.next());
  assert.equal((await harness().task(id)).turns, 1);
  assert.deepEqual(await events.rest(), []);
  assert.equal(events.end, "closed");
  assert.equal(joinResponse(seen).output[0].content[0].text, REPLIES.Plain);
});

Deno.test("silences are filled with comments", async () => {
  const slow = new TokenGate();
  await using served = await startHarness({ services: { keepAliveMs: 15 }, engine: { ...slow.engine, script } });
  const { key } = await served.createTask();
  slow.close();
  const events = await open(served, key);
  await events.comment();
  await until("the engine waits", () => slow.waiting === 1);
  slow.open();
  assert.equal(joinResponse(await events.rest()).output[0].content[0].text, REPLIES.Plain);
});

Deno.test("an engine that breaks off in the middle is response.failed, then a broken connection, and no turn", async () => {
  const { key, id } = await harness().createTask({ on_abort: "fail" });
  const { faults } = harness().development.engine;
  for (const fault of [{ kind: "cut", afterTokens: 4 }, { kind: "abort", by: "user", afterTokens: 4 }] as const) {
    faults.add({ when: { times: 1 }, fault });
    const { status, events, end } = await streamed(key, request("Plain"));
    assert.deepEqual([status, end], [200, "broken"]);
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, k) => k));
    const { type, response } = events.at(-1);
    assert.deepEqual([type, response.status, response.error.code], ["response.failed", "failed", "server_error"]);
    assert.equal(response.id, events[0].response.id);
    assert.ok(!events.some((event) => event.type === "response.completed"));
    assert.equal((await harness().task(id)).turns, 0);
  }
  const retried = await stream(harness(), key, request("Plain"), RETRY);
  assert.equal(joinResponse(retried.events).output[0].content[0].text, REPLIES.Plain);
});

Deno.test("a failure in the silence before the first event is an error event", async () => {
  const slow = new TokenGate();
  await using served = await startHarness({
    services: { keepAliveMs: 15 },
    environment: { ENGINE_RETRY_S: "0" },
    engine: { ...slow.engine, script },
  });
  const { engine } = served.development;
  const { key } = await served.createTask({ on_abort: "fail" });
  slow.close();
  const events = await open(served, key);
  await events.comment();
  await until("the engine waits", () => slow.waiting === 1);
  await engine.app.request("/abort_request", { method: "POST", body: JSON.stringify({ abort_all: true }) });
  const failed = await events.rest();
  slow.open();
  assert.deepEqual([failed.map(({ type, code }) => [type, code]), events.end], [
    [["error", "engine_failed"]],
    "broken",
  ]);
});

Deno.test("an engine that fails before its first token keeps its status", async () => {
  const { key } = await harness().createTask();
  harness().development.engine.faults.add({ when: { times: 1 }, fault: { kind: "http", status: 503 } });
  const { status, body } = await post(harness(), key, { ...request("Plain"), stream: true }, RESPONSES);
  assert.deepEqual([status, body.error.type, body.error.code], [503, "server_error", "engine_unavailable"]);
});

Deno.test("a retried stream is the same answer again, with the same ids", async () => {
  const { key, id } = await harness().createTask();
  const first = await streamed(key, request("Everything"));
  const again = await stream(harness(), key, request("Everything"), RETRY);
  assert.deepEqual(joinResponse(again.events), joinResponse(first.events));
  assert.deepEqual(await ask(harness(), key, request("Everything"), RETRY), joinResponse(first.events));
  assert.equal((await harness().turns(id)).length, 1);
});
