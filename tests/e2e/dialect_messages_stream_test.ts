/** Anthropic messages as a stream: the sequence of events, equal to the whole answer however the tokens came, and its faults. */

import assert from "node:assert/strict";
import { ask, post, stream } from "./dialect_client.ts";
import { EventStream } from "./event_stream.ts";
import { type Body, type Harness, sharedHarness, startHarness } from "./harness.ts";
import { joinMessage, type NamedEvents, typesOf } from "./named_events.ts";
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

const TOOLS = ["look", "run"].map((name) => ({ name, input_schema: { type: "object" } }));

function request(text: string): Record<string, unknown> {
  return { model: "m", max_tokens: 300, tools: TOOLS, messages: [{ role: "user", content: text }] };
}

const MESSAGES = { path: "/v1/messages" };
const RETRY = { ...MESSAGES, headers: { "x-stainless-retry-count": "1" } };

function streamed(key: string, body: Record<string, unknown>): Promise<NamedEvents> {
  return stream(harness(), key, body, MESSAGES);
}

Deno.test("a stream is exactly this sequence of events", async () => {
  const { key, id } = await harness().createTask();
  const { status, headers, events, end } = await streamed(key, request("Everything"));
  assert.deepEqual([status, end, headers.get("content-type")], [200, "closed", "text/event-stream; charset=utf-8"]);
  assert.ok(headers.get("request-id"));
  assert.deepEqual(typesOf(events), [
    "message_start",
    "ping",
    "content_block_start",
    "thinking_delta",
    "signature_delta",
    "content_block_stop",
    "content_block_start",
    "text_delta",
    "content_block_stop",
    "content_block_start",
    "input_json_delta",
    "content_block_stop",
    "content_block_start",
    "input_json_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  const [turn] = await harness().turns(id);
  assert.deepEqual(events[0].message.usage.input_tokens, turn.prompt_tokens);
  const { usage, verbatim } = events.at(-2);
  assert.deepEqual(verbatim, { turn: 0 });
  assert.equal(usage.input_tokens + usage.cache_read_input_tokens, turn.prompt_tokens);
  assert.equal(usage.output_tokens, turn.completion_tokens);
  assert.ok(events.filter((event) => event.delta?.type === "thinking_delta").length > 3, "thinking flows");
  assert.ok(events.filter((event) => event.delta?.type === "text_delta").length > 2, "text flows");
});

/** What of a message must be the same in every answer to one request. */
function comparable({ id: _id, usage, content, ...message }: Body): Body {
  return {
    ...message,
    content: content.map(({ id: _call, ...block }: Body) => block),
    tokens: [usage.input_tokens + usage.cache_read_input_tokens, usage.output_tokens],
  };
}

for (const incremental of [true, false]) {
  for (const streamInterval of [1, 2, 3, 7, 1000]) {
    const how = `${streamInterval} token(s) a frame, ${incremental ? "deltas" : "cumulative"}`;
    Deno.test(`streams join to the whole answer: ${how}`, async () => {
      await using served = await startHarness({ engine: { script, streamInterval, incremental } });
      for (const text of Object.keys(REPLIES)) {
        for (const more of [{}, { stop_sequences: ["STOP"] }, { max_tokens: 9 }, { tool_choice: { type: "none" } }]) {
          const { key } = await served.createTask({ on_repeat: "resample" });
          const body = { ...request(text), ...more };
          const whole = await ask(served, key, body, MESSAGES);
          const { events, end } = await stream(served, key, body, MESSAGES);
          assert.equal(end, "closed");
          assert.deepEqual(comparable(joinMessage(events)), comparable(whole), `${text} ${JSON.stringify(more)}`);
        }
      }
    });
  }
}

Deno.test("a character of several tokens is never broken", async () => {
  const { key } = await harness().createTask();
  const { events } = await streamed(key, request("Emoji"));
  for (const { delta } of events) {
    if (delta?.type !== "text_delta") continue;
    assert.ok(delta.text.isWellFormed());
    assert.doesNotMatch(delta.text, /�/);
  }
  assert.equal(joinMessage(events).content[0].text, REPLIES.Emoji);
});

/** Opens a stream and leaves it to be read event by event. */
async function open(served: Harness, key: string, body: Record<string, unknown>): Promise<EventStream> {
  return await EventStream.open(`${served.url}/v1/messages`, {
    headers: { "x-api-key": key },
    body: JSON.stringify({ ...body, stream: true }),
  });
}

/** The next event of this type; those before it are passed over. */
async function nextOf(events: EventStream, type: string): Promise<Body> {
  for (let event = await events.next(); event !== null; event = await events.next()) {
    if (event.type === type) return event;
  }
  assert.fail(`there was no ${type}`);
}

Deno.test("text leaves as it is sampled; the end leaves after the turn is recorded", async () => {
  const { key, id } = await harness().createTask();
  gate.close();
  const opening = open(harness(), key, request("Plain"));
  await until("the engine has the call", () => gate.waiting === 1);
  gate.step();
  const events = await opening;
  assert.equal((await nextOf(events, "content_block_delta")).delta.text, "Hello");
  await until("the engine waits for the second token", () => gate.waiting === 1);
  assert.equal((await harness().task(id)).turns, 0);
  gate.open();
  await nextOf(events, "message_delta");
  assert.equal((await harness().task(id)).turns, 1);
  assert.deepEqual((await events.rest()).map((event) => event.type), ["message_stop"]);
});

Deno.test("silences are filled with pings, before the first event and after", async () => {
  const slow = new TokenGate();
  await using served = await startHarness({ services: { keepAliveMs: 15 }, engine: { ...slow.engine, script } });
  const { key } = await served.createTask();
  slow.close();
  const events = await open(served, key, request("Plain"));
  assert.equal(events.status, 200);
  const seen = [await events.next(), await events.next()];
  await until("the engine waits", () => slow.waiting === 1);
  slow.step();
  seen.push(
    await nextOf(events, "message_start"),
    await nextOf(events, "ping"),
    await nextOf(events, "content_block_start"),
  );
  seen.push(await nextOf(events, "content_block_delta"), await nextOf(events, "ping"));
  slow.open();
  assert.deepEqual(seen.slice(0, 2), [{ type: "ping" }, { type: "ping" }]);
  assert.equal(joinMessage([...seen.slice(2), ...await events.rest()]).content[0].text, REPLIES.Plain);
});

Deno.test("an engine that breaks off in the middle is an error event, then a broken connection, and no turn", async () => {
  const { key, id } = await harness().createTask({ on_abort: "fail" });
  const { faults } = harness().development.engine;
  for (
    const [fault, code] of [
      [{ kind: "cut", afterTokens: 4 }, "engine_failed"],
      [{ kind: "abort", by: "user", afterTokens: 4 }, "engine_failed"],
      [{ kind: "output_id", at: 5, id: 999999999 }, "engine_inconsistent"],
    ] as const
  ) {
    faults.add({ when: { times: 1 }, fault });
    const { status, events, end } = await streamed(key, request("Plain"));
    assert.deepEqual([status, end], [200, "broken"]);
    assert.equal(events[0].type, "message_start");
    assert.ok(!events.some((event) => event.type === "message_delta" || event.type === "message_stop"));
    const { type, error } = events.at(-1);
    assert.deepEqual([type, error.type, error.code], ["error", "api_error", code]);
    assert.equal((await harness().task(id)).turns, 0);
  }
  faults.clear();
  const retried = await stream(harness(), key, request("Plain"), RETRY);
  assert.equal(joinMessage(retried.events).content[0].text, REPLIES.Plain);
});

Deno.test("an engine that fails before its first token keeps its status", async () => {
  const { key } = await harness().createTask();
  harness().development.engine.faults.add({ when: { times: 1 }, fault: { kind: "http", status: 503 } });
  const { status, body } = await post(harness(), key, { ...request("Plain"), stream: true }, MESSAGES);
  assert.deepEqual([status, body.error.type], [503, "overloaded_error"]);
});

Deno.test("a retried stream is the same answer again: ids, blocks and signature", async () => {
  const { key, id } = await harness().createTask();
  const first = await streamed(key, request("Everything"));
  const again = await stream(harness(), key, request("Everything"), RETRY);
  assert.deepEqual(joinMessage(again.events), joinMessage(first.events));
  const whole = await ask(harness(), key, request("Everything"), RETRY);
  assert.deepEqual(whole, joinMessage(first.events));
  assert.equal((await harness().turns(id)).length, 1);
});
