/** The tokenize endpoints: what the gateway itself does, for anyone to check. */

import assert from "node:assert/strict";
import { type Body, sharedHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";

const harness = sharedHarness({
  engine: {
    script: {
      rules: [{
        match: "Work",
        completions: [think("Call it.") + toolCall("run", { path: "x" }), "Done 👍🏽.", "And again."],
      }],
    },
  },
});

const TOOLS = [tool("run", ["path"])];

async function post(path: string, body: unknown): Promise<Body> {
  const answer = await harness().admin("POST", path, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

Deno.test("tokenize encodes a text, and decode gives it back", async () => {
  const text = "naïve 東京 👩‍👩‍👧‍👦\n\tfunction(x) { return <|im_end|>; }";
  const { tokens, count, max_model_len } = await post("/tokenize", { prompt: text });
  assert.equal(count, tokens.length);
  assert.equal(max_model_len, 131072);
  assert.deepEqual(await post("/tokenize/decode", { tokens, skip_special_tokens: false }), { text });
  assert.deepEqual(await post("/detokenize", { tokens, skip_special_tokens: false }), { text });
  const { text: skipped } = await post("/detokenize", { tokens });
  assert.equal(skipped, text.replace("<|im_end|>", ""));
});

Deno.test("tokenize encodes several texts, and decode takes several lists", async () => {
  const texts = ["one", "", "three 🍀"];
  const { tokens, count } = await post("/tokenize", { prompt: texts, add_special_tokens: false });
  assert.deepEqual(count, tokens.map((ids: number[]) => ids.length));
  assert.deepEqual(count[1], 0);
  assert.deepEqual(await post("/detokenize", { tokens }), { text: texts });
  assert.deepEqual(await post("/detokenize", { tokens: [] }), { text: "" });
});

Deno.test("tokenize renders messages as a turn's prompt is rendered", async () => {
  const { key } = await harness().createTask();
  const request = {
    messages: [{ role: "system", content: "You are." }, user("Work")],
    tools: TOOLS,
    chat_template_kwargs: { enable_thinking: false },
  };
  const { body } = await harness().chat(key, { ...request, max_tokens: 1, return_token_ids: true });
  const { tokens, count } = await post("/tokenize", request);
  assert.deepEqual(tokens, body.prompt_token_ids);
  assert.equal(count, tokens.length);
  const withoutPrompt = await post("/tokenize", { ...request, add_generation_prompt: false });
  assert.deepEqual(withoutPrompt.tokens, tokens.slice(0, withoutPrompt.count));
  assert.ok(withoutPrompt.count < count);
});

/** The observation before a turn's sampled tokens, cut from the region. */
function observationOf(result: Body, turn: number): number[] {
  return result.completion_token_ids.slice(result.turns[turn - 1].end, result.turns[turn].start);
}

Deno.test("increment is what the proxy put between two turns", async () => {
  const { id, key } = await harness().createTask();
  const messages: Body[] = [user("Work")];
  const first = await harness().chat(key, { messages, tools: TOOLS });
  const [call] = first.body.choices[0].message.tool_calls;
  messages.push(first.body.choices[0].message);
  const appended = [
    { role: "tool", tool_call_id: call.id, content: "it ran\n" },
    user("Go on 🚀"),
  ];
  await harness().chat(key, { messages: [...messages, ...appended], tools: TOOLS });
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  const observed = observationOf(body.result, 1);
  const increment = await post("/tokenize/increment", { messages, appended, tools: TOOLS, closed: true });
  assert.deepEqual(increment, { tokens: observed, count: observed.length });
  const [, turn] = await harness().turns(id);
  assert.equal(turn.observation_tokens, observed.length);
});

Deno.test("increment after a cut reply closes it first, as the proxy does", async () => {
  const { id, key } = await harness().createTask();
  const messages: Body[] = [user("Work")];
  const first = await harness().chat(key, { messages, max_tokens: 3 });
  assert.equal(first.body.choices[0].finish_reason, "length");
  messages.push(first.body.choices[0].message);
  const appended = [user("Go on")];
  await harness().chat(key, { messages: [...messages, ...appended] });
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  const observed = observationOf(body.result, 1);
  const open = await post("/tokenize/increment", { messages, appended, closed: false });
  assert.deepEqual(open.tokens, observed);
  const closed = await post("/tokenize/increment", { messages, appended, closed: true });
  assert.deepEqual(closed.tokens, observed.slice(observed.length - closed.count));
  assert.ok(closed.count < open.count);
});

Deno.test("increment needs nothing but the appended messages: messages may be empty", async () => {
  const appended = [user("Next")];
  const [without, with_] = [
    await post("/tokenize/increment", { messages: [], appended, closed: true }),
    await post("/tokenize/increment", { messages: [user("Before")], appended, closed: true }),
  ];
  assert.deepEqual(without, with_);
});

const REPLY = think("First 🔧.\nThen.") + "Look: 東京 🤷🏽‍♀️\n" + toolCall("run", { path: 'a "b" 🗂️' }) + "\n" +
  toolCall("run", { path: "c" });

function withoutIds(parsed: Body): Body {
  return { ...parsed, tool_calls: parsed.tool_calls.map(({ id: _id, ...call }: Body) => call) };
}

Deno.test("parse reads reasoning, content and calls from a text", async () => {
  const parsed = await post("/tokenize/parse", { text: REPLY, tools: TOOLS });
  assert.deepEqual(Object.keys(parsed).sort(), ["content", "parse", "reasoning", "tool_calls"]);
  assert.equal(parsed.reasoning, "First 🔧.\nThen.");
  assert.equal(parsed.content.trim(), "Look: 東京 🤷🏽‍♀️");
  assert.deepEqual(parsed.tool_calls.map((call: Body) => [call.type, call.function.name]), [
    ["function", "run"],
    ["function", "run"],
  ]);
  assert.notEqual(parsed.tool_calls[0].id, parsed.tool_calls[1].id);
  assert.deepEqual(JSON.parse(parsed.tool_calls[0].function.arguments), { path: 'a "b" 🗂️' });
  assert.deepEqual([parsed.parse.status, parsed.parse.problems], ["ok", []]);
});

Deno.test("parse gives the same for a text cut anywhere, within a character too", async () => {
  const whole = withoutIds(await post("/tokenize/parse", { text: REPLY, tools: TOOLS }));
  for (let step = 1; step <= 7; step++) {
    const chunks = Array.from({ length: Math.floor((REPLY.length - 1) / step) }, (_, k) => (k + 1) * step);
    assert.deepEqual(withoutIds(await post("/tokenize/parse", { text: REPLY, tools: TOOLS, chunks })), whole);
  }
  const beyond = await post("/tokenize/parse", { text: REPLY, tools: TOOLS, chunks: [0, 0, 5, 5, 10_000] });
  assert.deepEqual(withoutIds(beyond), whole);
});

Deno.test("parse gives the same for tokens, whole or cut, with and without their stop token", async () => {
  const whole = withoutIds(await post("/tokenize/parse", { text: REPLY, tools: TOOLS }));
  const { tokens } = await post("/tokenize", { prompt: REPLY });
  const { tokens: [stop] } = await post("/tokenize", { prompt: "<|im_end|>" });
  const every = tokens.map((_: number, k: number) => k);
  for (const body of [{ tokens }, { tokens: [...tokens, stop] }, { tokens, chunks: every }, { tokens, chunks: [3] }]) {
    assert.deepEqual(withoutIds(await post("/tokenize/parse", { ...body, tools: TOOLS })), whole);
  }
});

Deno.test("parse with a parser of null reads none, and with tool_choice none no calls", async () => {
  const plain = await post("/tokenize/parse", {
    text: REPLY,
    tools: TOOLS,
    tool_call_parser: null,
    reasoning_parser: null,
  });
  assert.deepEqual([plain.content, plain.reasoning, plain.tool_calls], [REPLY, null, []]);
  const uncalled = await post("/tokenize/parse", { text: REPLY, tools: TOOLS, tool_choice: "none" });
  assert.deepEqual(uncalled.tool_calls, []);
  assert.match(uncalled.content, /<tool_call>/);
  assert.equal(uncalled.reasoning, "First 🔧.\nThen.");
});

Deno.test("parse takes a reply whose reasoning the prompt opened", async () => {
  const parsed = await post("/tokenize/parse", {
    text: "Still thinking.\n</think>\n\nDone.",
    prompt_opens_reasoning: true,
  });
  assert.deepEqual([parsed.reasoning, parsed.content], ["Still thinking.", "Done."]);
});

Deno.test("parse names its problems: a truncated block, a malformed one, an unknown tool", async () => {
  const parse = (text: string) => post("/tokenize/parse", { text, tools: TOOLS });
  const truncated = await parse(toolCall("run", { path: "x" }).slice(0, -15));
  assert.deepEqual([truncated.parse.status, truncated.tool_calls], ["truncated", []]);
  const malformed = await parse("<tool_call>\n{broken}\n</tool_call>");
  assert.deepEqual([malformed.parse.status, malformed.tool_calls], ["malformed", []]);
  assert.match(malformed.content, /broken/);
  const unknown = await parse(toolCall("fly", {}));
  assert.deepEqual(unknown.parse.problems, ["unknown_tool"]);
});

Deno.test("parse reads what the proxy reads", async () => {
  const { key } = await harness().createTask();
  const { body } = await harness().chat(key, { messages: [user("Work")], tools: TOOLS, return_token_ids: true });
  const [choice] = body.choices;
  const parsed = withoutIds(await post("/tokenize/parse", { tokens: choice.token_ids, tools: TOOLS }));
  assert.equal(parsed.reasoning, choice.message.reasoning_content);
  assert.deepEqual(parsed.tool_calls, choice.message.tool_calls.map(({ id: _id, ...call }: Body) => call));
});

for (const prefix of ["/tokenize", ""]) {
  Deno.test(`${prefix}/parse_function_call has SGLang's shape`, async () => {
    const parsed = await post(`${prefix}/parse_function_call`, {
      text: `Look.\n${toolCall("run", { path: "x" })}`,
      tools: TOOLS,
      tool_call_parser: "qwen25",
    });
    assert.deepEqual(Object.keys(parsed).sort(), ["calls", "normal_text"]);
    assert.equal(parsed.normal_text.trim(), "Look.");
    const [call, ...more] = parsed.calls;
    assert.deepEqual([call.tool_index, call.name, more.length], [0, "run", 0]);
    assert.deepEqual(JSON.parse(call.parameters), { path: "x" });
  });

  Deno.test(`${prefix}/separate_reasoning has SGLang's shape`, async () => {
    const body = { text: think("Hm.") + "So.", reasoning_parser: "qwen3" };
    assert.deepEqual(await post(`${prefix}/separate_reasoning`, body), { reasoning_text: "Hm.", text: "So." });
    assert.deepEqual(await post(`${prefix}/separate_reasoning`, { text: "So." }), { reasoning_text: "", text: "So." });
  });
}
