/** Streamed chat: token by token as it is sampled, each chunk in OpenAI's shape, and joined the same as the whole answer. */

import assert from "node:assert/strict";
import { type Body, sharedHarness, user } from "./harness.ts";
import { joinChunks } from "./join_chunks.ts";
import { think, tool, toolCall } from "./replies.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const EMOJI = "Fine 👩‍👩‍👧‍👦 work: 🇩🇪 naïve 東京 🤷🏽‍♀️!";

const harness = sharedHarness({
  engine: {
    ...gate.engine,
    script: {
      rules: [
        { match: "Plain", completions: ["Hello to you, and a good day."] },
        { match: "Emoji", completions: [EMOJI] },
        {
          match: "Everything",
          completions: [
            think("First I look.\nThen I call 🔧.") + "I look around. 👀\n" +
            toolCall("look", { at: 'a "b"\n', deep: { x: [1, null] } }) +
            "\n" + toolCall("run", { path: "x.ts" }),
          ],
        },
        { match: "Stopped", completions: ["One two three STOP four five."] },
      ],
    },
  },
});

const TOOLS = [tool("look", ["at"]), tool("run", ["path"])];
const everything = { messages: [user("Everything")], tools: TOOLS };

async function frames(body: Record<string, unknown>): Promise<Body[]> {
  const { key } = await harness().createTask();
  const stream = await harness().stream(key, body);
  const all = await stream.rest();
  assert.equal(stream.end, "done");
  return all;
}

Deno.test("the first content leaves while the engine has yet to sample the second token", async () => {
  const { key } = await harness().createTask();
  gate.close();
  const opening = harness().stream(key, { messages: [user("Plain")] });
  await until("the engine has the call", () => gate.waiting === 1);
  gate.step();
  const stream = await opening;
  const role = await stream.next();
  const first = await stream.next();
  assert.deepEqual(role.choices[0].delta, { role: "assistant", content: "" });
  assert.equal(first.choices[0].delta.content, "Hello");
  // The engine has sampled one token and waits for the gate.
  await until("the engine waits", () => gate.waiting === 1);
  assert.equal(harness().development.engine.running, 1);
  gate.step();
  const second = await stream.next();
  assert.equal(second.choices[0].delta.content, " to");
  gate.open();
  assert.equal(
    joinChunks([role, first, second, ...await stream.rest()]).message.content,
    "Hello to you, and a good day.",
  );
});

Deno.test("every chunk has OpenAI's shape: one id, one choice, the finish reason at the end alone", async () => {
  const all = await frames({ messages: [user("Plain")], model: "my-model" });
  const [first] = all;
  assert.match(first.id, /^chatcmpl-/);
  for (const [k, chunk] of all.entries()) {
    assert.deepEqual(
      [chunk.id, chunk.object, chunk.created, chunk.model],
      [first.id, "chat.completion.chunk", first.created, "my-model"],
    );
    const [choice, ...more] = chunk.choices;
    assert.deepEqual([choice.index, more.length, "usage" in chunk], [0, 0, false]);
    assert.equal(choice.finish_reason, k === all.length - 1 ? "stop" : null);
    assert.equal("verbatim" in chunk, k === all.length - 1);
  }
  assert.deepEqual(first.choices[0].delta, { role: "assistant", content: "" });
  assert.ok(all.slice(1).every((chunk) => !("role" in chunk.choices[0].delta)));
  assert.deepEqual(all.at(-1).choices[0].delta, {});
  assert.deepEqual(all.at(-1).verbatim, { turn: 0 });
  assert.ok(all.length > 5);
});

Deno.test("the answer's head says that it is an event stream, not to be cached, with a request id", async () => {
  const { key } = await harness().createTask();
  const stream = await harness().stream(key, { messages: [user("Plain")] }, { "x-request-id": "mine-1" });
  await stream.rest();
  assert.equal(stream.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(stream.headers.get("cache-control"), "no-cache");
  assert.equal(stream.headers.get("x-request-id"), "mine-1");
});

Deno.test("reasoning, text and calls come in this order; a call comes whole in one chunk", async () => {
  const all = await frames(everything);
  const kinds = all.slice(1, -1).map((chunk) => Object.keys(chunk.choices[0].delta).join());
  const order = kinds.filter((kind, k) => kind !== kinds[k - 1]);
  assert.deepEqual(order, ["reasoning_content", "content", "tool_calls"]);
  assert.ok(kinds.filter((kind) => kind === "reasoning_content").length > 3, "reasoning flows as it is sampled");
  assert.ok(kinds.filter((kind) => kind === "content").length > 1, "text flows as it is sampled");
  const calls = all.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  assert.deepEqual(calls.map((call: Body) => [call.index, call.type, call.function.name]), [
    [0, "function", "look"],
    [1, "function", "run"],
  ]);
  assert.ok(calls.every((call: Body) => typeof call.id === "string" && call.id !== ""));
  assert.notEqual(calls[0].id, calls[1].id);
  assert.deepEqual(JSON.parse(calls[0].function.arguments), { at: 'a "b"\n', deep: { x: [1, null] } });
  assert.equal(all.at(-1).choices[0].finish_reason, "tool_calls");
});

Deno.test("a usage chunk comes only when asked for: last, with no choices", async () => {
  const all = await frames({ ...everything, stream_options: { include_usage: true } });
  const last = all.at(-1);
  assert.deepEqual(last.choices, []);
  assert.deepEqual(last.verbatim, { turn: 0 });
  const { usage } = last;
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.ok(usage.prompt_tokens > 0 && usage.completion_tokens > 10);
  assert.deepEqual(Object.keys(usage).sort(), [
    "completion_tokens",
    "completion_tokens_details",
    "prompt_tokens",
    "prompt_tokens_details",
    "total_tokens",
  ]);
  const finish = all.at(-2);
  assert.equal(finish.choices[0].finish_reason, "tool_calls");
  assert.equal("verbatim" in finish, false);
  assert.equal("usage" in finish, false);
});

Deno.test("token ids come when asked for, and are those of the record", async () => {
  const { key, id } = await harness().createTask();
  const stream = await harness().stream(key, { ...everything, return_token_ids: true });
  const all = await stream.rest();
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual(all.at(-1).prompt_token_ids, body.result.prompt_token_ids);
  assert.deepEqual(all.at(-1).choices[0].token_ids, body.result.completion_token_ids);
  assert.ok(all.slice(0, -1).every((chunk) => !("prompt_token_ids" in chunk)));
});

Deno.test("token ids come in the last chunk where a usage chunk follows, too", async () => {
  const all = await frames({ ...everything, return_token_ids: true, stream_options: { include_usage: true } });
  assert.ok(all.at(-1).prompt_token_ids.length > 0);
  assert.equal(all.at(-2).choices[0].token_ids.length, all.at(-1).usage.completion_tokens);
});

Deno.test("logprobs come when asked for, one a sampled token, as recorded", async () => {
  const { key, id } = await harness().createTask();
  const stream = await harness().stream(key, { messages: [user("Emoji")], logprobs: true });
  const joined = joinChunks(await stream.rest());
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual(joined.logprobs.map((entry: Body) => entry.logprob), body.result.logprobs);
  const bytes = joined.logprobs.slice(0, -1).flatMap((entry: Body) => entry.bytes);
  assert.equal(new TextDecoder().decode(Uint8Array.from(bytes)), EMOJI);
});

Deno.test("characters of several tokens are never broken, whatever the chunk they end in", async () => {
  const all = await frames({ messages: [user("Emoji")] });
  const texts = all.map((chunk) => chunk.choices[0].delta.content ?? "");
  assert.equal(texts.join(""), EMOJI);
  for (const text of texts) {
    assert.doesNotMatch(text, /\uFFFD/);
    assert.ok(text.isWellFormed());
  }
});

for (
  const [what, body] of [
    ["plain text", { messages: [user("Plain")] }],
    ["emoji", { messages: [user("Emoji")] }],
    ["reasoning, text and calls", everything],
    ["a call that is not to be parsed", { ...everything, tool_choice: "none" }],
    ["a call without tools", { messages: [user("Everything")] }],
    ["a stop string", { messages: [user("Stopped")], stop: "STOP" }],
    ["a cut by length", { ...everything, max_tokens: 30 }],
    ["a cut within a call", { ...everything, max_tokens: 45 }],
    ["one token", { ...everything, max_tokens: 1 }],
  ] as const
) {
  Deno.test(`a stream of ${what} joins to the whole answer`, async () => {
    const asked = { ...body, return_token_ids: true, logprobs: true };
    const joined = joinChunks(await frames({ ...asked, stream_options: { include_usage: true } }));
    const { key } = await harness().createTask();
    const { body: whole } = await harness().chat(key, asked);
    const [choice] = whole.choices;
    assert.deepEqual(withoutIds(joined.message), withoutIds(choice.message));
    assert.equal(joined.finish_reason, choice.finish_reason);
    assert.deepEqual(joined.token_ids, choice.token_ids);
    assert.deepEqual(joined.prompt_token_ids, whole.prompt_token_ids);
    assert.deepEqual(joined.logprobs, choice.logprobs.content);
    const { prompt_tokens_details: _cached, ...usage } = whole.usage;
    const { prompt_tokens_details: _streamed, ...streamedUsage } = joined.usage;
    assert.deepEqual(streamedUsage, usage);
  });
}

/** Call ids are drawn anew for each answer. */
function withoutIds(message: Body): Body {
  const { tool_calls: calls, ...rest } = message;
  return calls === undefined ? rest : { ...rest, tool_calls: calls.map(({ id: _id, ...call }: Body) => call) };
}

Deno.test("a stop string is cut from the stream, and nothing of it leaves early", async () => {
  const all = await frames({ messages: [user("Stopped")], stop: ["STOP", "never"] });
  const text = all.map((chunk) => chunk.choices[0].delta.content ?? "").join("");
  assert.equal(text, "One two three ");
  assert.equal(all.at(-1).choices[0].finish_reason, "stop");
});

Deno.test("the end of a stream leaves only after the turn is recorded", async () => {
  const { key, id } = await harness().createTask();
  const stream = await harness().stream(key, { messages: [user("Plain")] });
  for (let chunk = await stream.next(); chunk !== null; chunk = await stream.next()) {
    if (chunk.choices[0].finish_reason !== null) break;
  }
  assert.equal((await harness().task(id)).turns, 1);
  await stream.rest();
});
