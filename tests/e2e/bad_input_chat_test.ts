/** Requests that a chat client got wrong: refused with the field's name, in OpenAI's words; what does no harm is accepted and named. */

import assert from "node:assert/strict";
import { type Answered, sharedHarness, user } from "./harness.ts";
import { countEngineCalls } from "./engine_calls.ts";
import { tool } from "./replies.ts";

const harness = sharedHarness({
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
});

const messages = [user("Hello")];

/** One refusal in OpenAI's shape, not worth another try, of a call that reached no engine. */
function assertRefused(answer: Answered, expected: { status: number; code: string; param: string | null }): void {
  assert.equal(answer.status, expected.status, JSON.stringify(answer.body));
  const { error } = answer.body;
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  assert.deepEqual(Object.keys(error).sort(), ["code", "message", "param", "type"]);
  assert.deepEqual({ code: error.code, param: error.param }, { code: expected.code, param: expected.param });
  assert.equal(error.type, "invalid_request_error");
  assert.equal(typeof error.message, "string");
  assert.equal(answer.headers.get("x-should-retry"), "false");
  assert.equal(answer.headers.get("x-verbatim-turn"), "none");
  assert.equal(answer.headers.get("retry-after"), null);
  assert.ok(answer.headers.get("x-request-id"));
}

async function assertNothingRecorded(id: string): Promise<void> {
  const task = await harness().task(id);
  assert.equal(task.turns, 0);
  assert.deepEqual(task.tokens, { prompt: 0, completion: 0 });
}

Deno.test("chat refuses a body that is not JSON, not UTF-8, or empty", async () => {
  const { key, id } = await harness().createTask();
  for (
    const body of ["", "{", '{"messages": [', "messages", "{'messages': []}", new Uint8Array([0x22, 0xff, 0x22])]
  ) {
    const response = await fetch(`${harness().url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body,
    });
    assertRefused(
      { status: response.status, headers: response.headers, body: await response.json() },
      { status: 400, code: "invalid_request", param: null },
    );
  }
  await assertNothingRecorded(id);
});

Deno.test("chat refuses a body that is JSON and no object", async () => {
  const { key } = await harness().createTask();
  for (const body of ["[]", "null", "7", '"messages"', "true"]) {
    const response = await fetch(`${harness().url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body,
    });
    assertRefused(
      { status: response.status, headers: response.headers, body: await response.json() },
      { status: 400, code: "invalid_request", param: null },
    );
  }
});

const WRONG: readonly (readonly [what: string, body: Record<string, unknown>, param: string])[] = [
  ["no messages", {}, "messages"],
  ["empty messages", { messages: [] }, "messages"],
  ["messages as text", { messages: "Hello" }, "messages"],
  ["a message that is no object", { messages: [user("Hello"), 5] }, "messages.1"],
  ["a message without a role", { messages: [{ content: "Hello" }] }, "messages.0.role"],
  ["a role that there is not", { messages: [{ role: "wizard", content: "Hello" }] }, "messages.0.role"],
  ["content as a number", { messages: [{ role: "user", content: 5 }] }, "messages.0.content"],
  ["a part that is no object", { messages: [{ role: "user", content: [5] }] }, "messages.0.content.0"],
  [
    "a part's text as a number",
    { messages: [{ role: "user", content: [{ type: "text", text: 5 }] }] },
    "messages.0.content.0.text",
  ],
  [
    "tool calls as an object",
    { messages: [user("Hello"), { role: "assistant", content: "", tool_calls: {} }] },
    "messages.1.tool_calls",
  ],
  [
    "a call without a name",
    { messages: [user("Hello"), { role: "assistant", tool_calls: [{ id: "a", type: "function", function: {} }] }] },
    "messages.1.tool_calls.0.function.name",
  ],
  [
    "a call's arguments as a number",
    {
      messages: [
        user("Hello"),
        { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: 5 } }] },
      ],
    },
    "messages.1.tool_calls.0.function.arguments",
  ],
  ["tools as an object", { messages, tools: {} }, "tools"],
  ["a tool that is no object", { messages, tools: ["f"] }, "tools.0"],
  ["a tool without a name", { messages, tools: [{ type: "function", function: {} }] }, "tools.0.function.name"],
  ["a token limit as text", { messages, max_tokens: "5" }, "max_tokens"],
  ["a token limit of zero", { messages, max_tokens: 0 }, "max_tokens"],
  ["a token limit with a fraction", { messages, max_completion_tokens: 1.5 }, "max_completion_tokens"],
  ["a temperature as text", { messages, temperature: "hot" }, "temperature"],
  ["a temperature out of bounds", { messages, temperature: 3 }, "temperature"],
  ["top_p of zero", { messages, top_p: 0 }, "top_p"],
  ["a stop as a number", { messages, stop: 5 }, "stop"],
  [
    "more stops than can be looked for",
    { messages, stop: Array.from({ length: 2000 }, (_, k) => `stop ${k}`) },
    "stop",
  ],
  ["a stop list of numbers", { messages, stop: ["a", 5] }, "stop.1"],
  ["stream as text", { messages, stream: "yes" }, "stream"],
  ["stream options as text", { messages, stream: true, stream_options: "usage" }, "stream_options"],
  ["a model as a number", { messages, model: 5 }, "model"],
  ["a seed with a fraction", { messages, seed: 0.5 }, "seed"],
  ["a tool choice that there is not", { messages, tool_choice: "perhaps" }, "tool_choice"],
  ["template settings as a list", { messages, chat_template_kwargs: [] }, "chat_template_kwargs"],
  ["a forced call without tools", { messages, tool_choice: "required" }, "tool_choice"],
  [
    "a forced call of another tool",
    { messages, tools: [tool("f")], tool_choice: { type: "function", function: { name: "g" } } },
    "tool_choice",
  ],
  ["top logprobs without logprobs", { messages, top_logprobs: 3 }, "top_logprobs"],
  ["more top logprobs than 20", { messages, logprobs: true, top_logprobs: 21 }, "top_logprobs"],
  ["a bias on what is no id", { messages, logit_bias: { Hello: 1 } }, "logit_bias.Hello"],
];

for (const [what, body, param] of WRONG) {
  Deno.test(`chat refuses ${what} and names ${param}`, async () => {
    const { key, id } = await harness().createTask();
    const calls = countEngineCalls(harness());
    assertRefused(await harness().chat(key, body), { status: 400, code: "invalid_request", param });
    assert.equal(calls(), 0);
    await assertNothingRecorded(id);
  });
}

const UNSUPPORTED: readonly (readonly [what: string, body: Record<string, unknown>, param: string])[] = [
  ["several choices", { messages, n: 2 }, "n"],
  ["a response format that there is not", { messages, response_format: { type: "poem" } }, "response_format.type"],
  ["functions of the old kind", { messages, functions: [{ name: "f" }] }, "functions"],
  ["a reply to be continued", { messages, continue_final_message: true }, "continue_final_message"],
  [
    "an image",
    {
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] }],
    },
    "messages.0.content",
  ],
  [
    "audio",
    { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
    "messages.0.content.0.type",
  ],
  ["a tool of another type", { messages, tools: [{ type: "web_search" }] }, "tools.0.type"],
];

for (const [what, body, param] of UNSUPPORTED) {
  Deno.test(`chat refuses ${what} instead of ignoring it`, async () => {
    const { key, id } = await harness().createTask();
    const calls = countEngineCalls(harness());
    assertRefused(await harness().chat(key, body), { status: 400, code: "unsupported", param });
    assert.equal(calls(), 0);
    await assertNothingRecorded(id);
  });
}

Deno.test("chat takes null for a field that is not set", async () => {
  const { key } = await harness().createTask();
  const fields = ["model", "tools", "tool_choice", "stream", "stream_options", "max_tokens", "stop", "n", "logprobs"];
  const unset = Object.fromEntries([...fields, "temperature", "seed", "logit_bias"].map((name) => [name, null]));
  const { status, body } = await harness().chat(key, { messages, ...unset });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.choices[0].message.content, "Hello to you.");
});

Deno.test("chat accepts unknown fields and lists them, and wishes in vain, as ignored", async () => {
  const { key, id } = await harness().createTask();
  const { status } = await harness().chat(key, {
    messages,
    user: "someone",
    metadata: { a: 1 },
    store: true,
    parallel_tool_calls: false,
    made_up: [1],
    temperature: 0.2,
    top_p: 1,
    seed: 7,
    max_tokens: 50,
  });
  assert.equal(status, 200);
  const [turn] = await harness().turns(id);
  // top_p 1 holds anyway, and a token limit is the agent's to set.
  assert.deepEqual(turn.ignored_fields.toSorted(), [
    "made_up",
    "metadata",
    "parallel_tool_calls",
    "sampling_seed",
    "store",
    "temperature",
    "user",
  ]);
  assert.equal(turn.sampling.temperature, 1);
  assert.equal(turn.sampling.max_new_tokens, 50);
});

Deno.test("chat sets what the task lets the agent set, and then lists it as ignored no more", async () => {
  const { key, id } = await harness().createTask({ sampling: { agent_may_set: ["temperature", "sampling_seed"] } });
  await harness().chat(key, { messages, temperature: 0.5, seed: 7, presence_penalty: 1 });
  const [turn] = await harness().turns(id);
  assert.equal(turn.sampling.temperature, 0.5);
  assert.equal(turn.sampling.sampling_seed, 7);
  assert.equal(turn.basis.temperature, 0.5);
  assert.deepEqual(turn.ignored_fields, ["presence_penalty"]);
});

Deno.test("chat refuses a biased token that is not in the vocabulary", async () => {
  const { key, id } = await harness().createTask({ sampling: { agent_may_set: ["logit_bias"] } });
  const calls = countEngineCalls(harness());
  const answer = await harness().chat(key, { messages, logit_bias: { 999999999: 1 } });
  assertRefused(answer, { status: 400, code: "token_out_of_range", param: "logit_bias.999999999" });
  assert.equal(calls(), 0);
  await assertNothingRecorded(id);
});

Deno.test("chat reads arguments nested beyond reason as the text they are", async () => {
  const { key } = await harness().createTask();
  const nested = "[".repeat(200_000) + "]".repeat(200_000);
  const call = { id: "call_0", type: "function", function: { name: "f", arguments: nested } };
  const { status, body } = await harness().chat(key, {
    messages: [user("Hello"), { role: "assistant", tool_calls: [call] }, { role: "tool", tool_call_id: "call_0" }],
    max_tokens: 1,
  });
  assert.notEqual(status, 500, JSON.stringify(body));
});

Deno.test("chat refuses JSON nested beyond reason, as the caller's mistake", async () => {
  const { key, id } = await harness().createTask();
  const depth = 200_000;
  const nested = "[".repeat(depth) + "]".repeat(depth);
  for (
    const body of [
      `{"messages": [{"role": "user", "content": "Hello"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": ${nested}}}]}`,
      `{"messages": [{"role": "user", "content": "Hello"}], "chat_template_kwargs": {"x": ${nested}}}`,
      `{"messages": ${nested}}`,
      `{"messages": [{"role": "user", "content": "Hello"}], "metadata": ${nested}}`,
    ]
  ) {
    const response = await fetch(`${harness().url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body,
    });
    const answer = await response.json();
    assert.equal(response.status, 400, JSON.stringify(answer));
    assert.equal(answer.error.code, "invalid_request");
  }
  await assertNothingRecorded(id);
});
