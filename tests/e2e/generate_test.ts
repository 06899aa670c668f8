/** `POST /generate`: ids or messages in, a GenerationResult out, whole or as deltas that join to it. */

import assert from "node:assert/strict";
import { EventStream } from "./event_stream.ts";
import { type Answered, type Body, sharedHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const harness = sharedHarness({
  engine: {
    ...gate.engine,
    script: {
      rules: [
        { match: "Hello", completions: ["Hello 👋🏽 to you."] },
        { match: "Work", completions: [think("Call it.") + "On it.\n" + toolCall("run", { path: "x" })] },
        { match: "Count", completions: ["One two three four five six seven eight nine ten."] },
      ],
    },
  },
});

async function generate(body: Record<string, unknown>, path = "/generate"): Promise<Answered> {
  return await harness().admin("POST", path, body);
}

async function idsOf(text: string): Promise<number[]> {
  const { body } = await harness().admin("POST", "/tokenize", { messages: [user(text)] });
  return body.tokens;
}

const FIELDS = [
  "finish_reason",
  "logprobs",
  "reasoning",
  "text",
  "token_ids",
  "tool_calls",
  "usage",
  "weight_version",
];

function assertResult(result: Body): void {
  assert.deepEqual(Object.keys(result).sort(), FIELDS);
  assert.equal(result.token_ids.length, result.logprobs.length);
  assert.equal(result.usage.completion_tokens, result.token_ids.length);
  assert.deepEqual(Object.keys(result.usage).sort(), ["cached_tokens", "completion_tokens", "prompt_tokens"]);
  assert.ok(result.logprobs.every((logprob: number) => Number.isFinite(logprob) && logprob <= 0));
  assert.equal(result.weight_version, "default");
}

Deno.test("generate samples after the very ids it is given", async () => {
  const input_ids = await idsOf("Hello");
  const { status, body } = await generate({ input_ids });
  assert.equal(status, 200);
  assertResult(body);
  assert.equal(body.text, "Hello 👋🏽 to you.");
  assert.deepEqual([body.reasoning, body.tool_calls, body.finish_reason], [null, null, "stop"]);
  assert.equal(body.usage.prompt_tokens, input_ids.length);
  const decoded = await harness().admin("POST", "/detokenize", { tokens: body.token_ids });
  assert.equal(decoded.body.text, body.text);
});

Deno.test("generate renders messages and tools, and reads reasoning and calls", async () => {
  const { body } = await generate({ messages: [user("Work")], tools: [tool("run", ["path"])] });
  assertResult(body);
  assert.equal(body.reasoning, "Call it.");
  assert.equal(body.finish_reason, "tool_calls");
  const [call, ...more] = body.tool_calls;
  assert.deepEqual([call.type, call.function.name, more.length], ["function", "run", 0]);
  assert.deepEqual(JSON.parse(call.function.arguments), { path: "x" });
  assert.match(body.text, /^<think>\nCall it\.\n<\/think>\n\nOn it\.\n<tool_call>/);
});

Deno.test("generate of messages samples after the prompt that tokenize gives", async () => {
  const messages = [user("Count")];
  const { body } = await harness().admin("POST", "/tokenize", { messages });
  const [byIds, byMessages] = [
    await generate({ input_ids: body.tokens, sampling_params: { temperature: 0, max_new_tokens: 6 } }),
    await generate({ messages, sampling_params: { temperature: 0, max_new_tokens: 6 } }),
  ];
  assert.deepEqual(byIds.body.token_ids, byMessages.body.token_ids);
  assert.equal(byIds.body.usage.prompt_tokens, byMessages.body.usage.prompt_tokens);
});

Deno.test("generate takes SGLang's sampling parameters", async () => {
  const input_ids = await idsOf("Say");
  const sampled = async (sampling_params: Record<string, unknown>) => {
    const answer = await generate({ input_ids, sampling_params });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  const greedy = await sampled({ temperature: 0, max_new_tokens: 8 });
  assert.deepEqual(greedy.token_ids, (await sampled({ temperature: 0, max_new_tokens: 8 })).token_ids);
  const seeded = await sampled({ sampling_seed: 11, max_new_tokens: 8, top_p: 0.9, top_k: 20, min_p: 0.01 });
  assert.deepEqual(
    seeded.token_ids,
    (await sampled({ sampling_seed: 11, max_new_tokens: 8, top_p: 0.9, top_k: 20, min_p: 0.01 })).token_ids,
  );
  const [first] = greedy.token_ids;
  const stopped = await sampled({ temperature: 0, max_new_tokens: 8, stop_token_ids: [first] });
  assert.deepEqual([stopped.token_ids, stopped.finish_reason], [[first], "stop"]);
});

Deno.test("generate ends by length at its limit, and takes zero for none", async () => {
  const input_ids = await idsOf("Count");
  const short = await generate({ input_ids, sampling_params: { max_new_tokens: 3 } });
  assert.deepEqual([short.body.token_ids.length, short.body.finish_reason], [3, "length"]);
  const none = await generate({ input_ids, sampling_params: { max_new_tokens: 0 } });
  assert.equal(none.status, 200, JSON.stringify(none.body));
  assert.deepEqual([none.body.token_ids, none.body.text, none.body.finish_reason], [[], "", "length"]);
});

Deno.test("generate cuts a stop string from the text and keeps its tokens", async () => {
  const { body } = await generate({ messages: [user("Count")], sampling_params: { stop: "four" } });
  assert.equal(body.text, "One two three ");
  assert.equal(body.finish_reason, "stop");
  const decoded = await harness().admin("POST", "/detokenize", { tokens: body.token_ids });
  assert.equal(decoded.body.text, "One two three four");
});

for (
  const [what, body] of [
    ["emoji", { messages: [user("Hello")] }],
    ["reasoning and calls", { messages: [user("Work")], tools: [tool("run", ["path"])] }],
    ["a stop string", { messages: [user("Count")], sampling_params: { stop: ["four"] } }],
    ["a cut by length", { messages: [user("Count")], sampling_params: { max_new_tokens: 4 } }],
  ] as const
) {
  Deno.test(`generate streams deltas that join to the whole: ${what}`, async () => {
    const stream = await EventStream.open(`${harness().url}/generate`, {
      headers: {},
      body: JSON.stringify({ ...body, stream: true }),
    });
    const frames = await stream.rest();
    assert.equal(stream.end, "done");
    const { done, ...result } = frames.at(-1);
    assert.equal(done, true);
    assertResult(result);
    const deltas = frames.slice(0, -1);
    assert.ok(deltas.length > 1);
    assert.ok(deltas.every((delta) => Object.keys(delta).join() === "token_ids,logprobs,text"));
    assert.deepEqual(deltas.flatMap((delta) => delta.token_ids), result.token_ids);
    assert.deepEqual(deltas.flatMap((delta) => delta.logprobs), result.logprobs);
    assert.equal(deltas.map((delta) => delta.text).join(""), result.text);
    assert.ok(deltas.every((delta) => !delta.text.includes("\uFFFD")));
    const whole = await generate(body);
    assert.deepEqual([whole.body.text, whole.body.token_ids], [result.text, result.token_ids]);
  });
}

Deno.test("generate's first delta leaves while the engine has yet to sample the second token", async () => {
  gate.close();
  const opening = EventStream.open(`${harness().url}/generate`, {
    headers: {},
    body: JSON.stringify({ messages: [user("Count")], stream: true }),
  });
  await until("the engine has the call", () => gate.waiting === 1);
  gate.step();
  const stream = await opening;
  const first = await stream.next();
  assert.equal(first.token_ids.length, 1);
  await until("the engine waits", () => gate.waiting === 1);
  gate.open();
  await stream.rest();
  assert.equal(stream.end, "done");
});

Deno.test("generate's stream that fails later carries the error, then breaks", async () => {
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "cut", afterTokens: 2 } });
  const stream = await EventStream.open(`${harness().url}/generate`, {
    headers: {},
    body: JSON.stringify({ messages: [user("Count")], stream: true }),
  });
  const frames = await stream.rest();
  faults.clear();
  assert.deepEqual([frames.at(-1).error.code, frames.at(-1).error.retryable], ["engine_failed", true]);
  assert.equal(stream.end, "broken");
  assert.ok(frames.every((frame) => frame.done !== true));
});

Deno.test("generate records nothing", async () => {
  const { body: before } = await harness().admin("GET", "/tasks?limit=1000");
  await generate({ messages: [user("Hello")], routing_key: "route", model: "any" });
  const { body: after } = await harness().admin("GET", "/tasks?limit=1000");
  assert.deepEqual(after, before);
});
