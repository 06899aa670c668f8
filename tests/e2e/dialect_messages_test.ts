/** Anthropic messages, not streamed: bodies, tool loops, counts, stops and refusals as the API has them. */

import assert from "node:assert/strict";
import { ask, assertOneSeries, post } from "./dialect_client.ts";
import { countEngineCalls } from "./engine_calls.ts";
import { type Body, sharedHarness } from "./harness.ts";
import { think, toolCall } from "./replies.ts";

const ODD_ARGUMENTS = '{"path":  "a\\u00e9",\n "n": 60.0, "big": 18446744073709551616, "2": [1e3]}';

const harness = sharedHarness({
  engine: {
    script: {
      rules: [
        {
          match: "Work",
          completions: [
            think("First I look.\n") + "I look around. 👀\n" + toolCall("look", { at: "here" }) + "\n" +
            toolCall("run", { path: "x" }),
            "\n\nAll is well.  ",
            "Nothing more to do.",
          ],
        },
        {
          match: "Odd",
          completions: [
            `<tool_call>\n{"name": "run", "arguments": ${ODD_ARGUMENTS}}\n</tool_call>`,
            "Oddly done.",
          ],
        },
        { match: "Count", completions: ["One two three STOP four"] },
      ],
    },
  },
});

const TOOLS = ["look", "run"].map((name) => ({
  name,
  description: `Does ${name}.`,
  input_schema: { type: "object", properties: { path: { type: "string" } } },
}));

const MESSAGES = "/v1/messages";

function request(text: string): Record<string, unknown> {
  return { model: "m", max_tokens: 300, tools: TOOLS, messages: [{ role: "user", content: text }] };
}

async function asked(key: string, body: Record<string, unknown>): Promise<Body> {
  return await ask(harness(), key, body, { path: MESSAGES });
}

/** The next request: what came so far, the answer as served, and the user's blocks. */
function after(body: Record<string, unknown>, message: Body, content: unknown): Record<string, unknown> {
  const before = body.messages as unknown[];
  return { ...body, messages: [...before, { role: "assistant", content: message.content }, { role: "user", content }] };
}

Deno.test("a message has the API's shape: thinking, text and calls in order, counts that add up", async () => {
  const { key, id } = await harness().createTask();
  const { status, headers, body } = await post(harness(), key, request("Work"), { path: MESSAGES });
  assert.equal(status, 200);
  assert.equal(headers.get("x-verbatim-turn"), "0");
  assert.equal(headers.get("request-id"), headers.get("x-request-id"));
  const [thinking, text, look, run] = body.content;
  assert.deepEqual(body, {
    id: body.id,
    type: "message",
    role: "assistant",
    model: "m",
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: body.usage,
    content: [
      { type: "thinking", thinking: "First I look.", signature: thinking.signature },
      { type: "text", text: "I look around. 👀" },
      { type: "tool_use", id: look.id, name: "look", input: { at: "here" } },
      { type: "tool_use", id: run.id, name: "run", input: { path: "x" } },
    ],
  });
  assert.match(body.id, /^msg_[0-9a-f]{24}$/);
  assert.match(thinking.signature, /^[A-Za-z0-9+/]{20,}=*$/);
  assert.equal(text.text, "I look around. 👀");
  assert.notEqual(look.id, run.id);
  const [turn] = await harness().turns(id);
  const { usage } = body;
  assert.equal(
    usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
    turn.prompt_tokens,
  );
  assert.equal(usage.output_tokens, turn.completion_tokens);
  assert.equal(turn.dialect, "messages");
});

Deno.test("results in any order, as text, lists or errors, extend one series, each token where it was sampled", async () => {
  const task = await harness().createTask();
  const first = request("Work");
  const one = await asked(task.key, first);
  const [look, run] = one.content.filter((block: Body) => block.type === "tool_use");
  const second = after(first, one, [
    {
      type: "tool_result",
      tool_use_id: run.id,
      content: [{ type: "text", text: "ran " }, { type: "text", text: "x" }],
      is_error: true,
    },
    { type: "tool_result", tool_use_id: look.id, content: "saw", cache_control: { type: "ephemeral" } },
    { type: "text", text: "Go on." },
  ]);
  const two = await asked(task.key, second);
  assert.deepEqual([two.content, two.stop_reason], [[{ type: "text", text: "\n\nAll is well.  " }], "end_turn"]);
  const third = after(second, two, "Anything else?");
  assert.equal((await asked(task.key, third)).content[0].text, "Nothing more to do.");
  await assertOneSeries(harness(), task, ["exact", "exact"]);
});

Deno.test("arguments come as they were sampled, and come back as the client reads them", async () => {
  const task = await harness().createTask();
  const first = request("Odd");
  const response = await fetch(`${harness().url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": task.key },
    body: JSON.stringify(first),
  });
  const text = await response.text();
  assert.ok(text.includes(`"input":${ODD_ARGUMENTS}`), text);
  const one = JSON.parse(text);
  await asked(task.key, after(first, one, [{ type: "tool_result", tool_use_id: one.content[0].id }]));
  // A JavaScript client rounds the large number and moves the key that looks like an index.
  const [, decision] = await harness().decisions(task.id);
  assert.deepEqual([decision.relation, decision.echo, decision.verdict], ["append", "representation", "ok"]);
});

Deno.test("system text, as text or blocks, stands first; nonces and cache marks count for nothing", async () => {
  const task = await harness().createTask();
  const block = (text: string, rest = {}) => ({ type: "text", text, ...rest });
  const first = {
    ...request("Work"),
    system: [block("x-anthropic-billing-header: nonce=1"), block("Be good. "), block("Be quick.")],
  };
  const one = await asked(task.key, first);
  const results = one.content.filter((part: Body) => part.type === "tool_use").map((call: Body) => ({
    type: "tool_result",
    tool_use_id: call.id,
    content: "ok",
  }));
  const second = after(first, one, results);
  await asked(task.key, {
    ...second,
    system: [
      block("x-anthropic-billing-header: nonce=2"),
      block("Be good. Be quick.", { cache_control: { type: "ephemeral" } }),
    ],
  });
  await assertOneSeries(harness(), task, ["exact"]);
});

Deno.test("a system message in mid-conversation stays where it stands, as text or as a list", async () => {
  const task = await harness().createTask();
  const first = { ...request("Count"), system: "Be good." };
  const one = await asked(task.key, first);
  const reminder = {
    role: "system",
    content: [{ type: "text", text: "Remember.", cache_control: { type: "ephemeral" } }],
  };
  const second = after(first, one, "And?");
  const withReminder = [...second.messages as unknown[], reminder];
  const two = await asked(task.key, { ...second, messages: withReminder });
  const third = {
    ...second,
    messages: [...second.messages as unknown[], { role: "system", content: "Remember." }, {
      role: "assistant",
      content: two.content,
    }, { role: "user", content: "And then?" }],
  };
  await asked(task.key, third);
  await assertOneSeries(harness(), task, ["exact", "exact"]);
});

Deno.test("count_tokens is the length of the prompt that the same request then gets, and consumes nothing", async () => {
  const task = await harness().createTask();
  const calls = countEngineCalls(harness());
  async function count(body: Record<string, unknown>, path = "/v1/messages/count_tokens"): Promise<number> {
    const counted = await ask(harness(), task.key, body, { path });
    assert.deepEqual(Object.keys(counted), ["input_tokens"]);
    return counted.input_tokens;
  }
  const first = { ...request("Work"), system: "Be good." };
  const counted = [await count(first)];
  assert.equal(calls(), 0);
  const one = await asked(task.key, first);
  const results = one.content.filter((part: Body) => part.type === "tool_use").map((call: Body) => ({
    type: "tool_result",
    tool_use_id: call.id,
    content: "a result of some length",
  }));
  const second = after(first, one, results);
  counted.push(await count(second, "/v1/v1/messages/count_tokens"));
  await asked(task.key, second);
  assert.equal(calls(), 2);
  assert.deepEqual(counted, (await harness().turns(task.id)).map((turn) => turn.prompt_tokens));
});

Deno.test("a reply says why it stopped", async () => {
  const { key } = await harness().createTask();
  const stopped = await asked(key, { ...request("Count"), stop_sequences: ["never", "STOP"] });
  assert.deepEqual([stopped.stop_reason, stopped.stop_sequence], ["stop_sequence", "STOP"]);
  assert.deepEqual(stopped.content, [{ type: "text", text: "One two three " }]);
  const cut = await asked(key, { ...request("Count"), max_tokens: 3 });
  assert.deepEqual([cut.stop_reason, cut.stop_sequence, cut.usage.output_tokens], ["max_tokens", null, 3]);
  const whole = await asked(key, request("Count"));
  assert.deepEqual([whole.stop_reason, whole.stop_sequence], ["end_turn", null]);
});

Deno.test("the base URL may end in /v1 or not, the key may come as either header or in the path", async () => {
  const { key, id } = await harness().createTask();
  const plain = { "x-api-key": "", authorization: `Bearer ${key}` };
  for (
    const [path, headers] of [
      ["/v1/messages?beta=true", {}],
      ["/v1/v1/messages", {}],
      ["/v1/messages", plain],
      [`/k/${key}/v1/messages`, { "x-api-key": "other" }],
      [`/k/${key}/v1/v1/messages`, { "x-api-key": "other" }],
      ["/proxy-turn/v1/messages", {}],
    ] as const
  ) {
    await ask(harness(), key, request("Count"), { path, headers });
  }
  assert.equal((await harness().turns(id)).length, 6);
});

Deno.test("fields without effect are accepted and listed", async () => {
  const { key, id } = await harness().createTask();
  await asked(key, {
    ...request("Count"),
    metadata: { user_id: "u" },
    thinking: { type: "adaptive", display: "omitted" },
    context_management: { edits: [] },
    output_config: { effort: "high" },
    service_tier: "auto",
    temperature: 0.3,
    top_k: 0,
    tools: [{ type: "bash_20250124", name: "bash" }, ...TOOLS],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
  });
  const [turn] = await harness().turns(id);
  assert.deepEqual(turn.ignored_fields.toSorted(), [
    "context_management",
    "metadata",
    "output_config.effort",
    "service_tier",
    "temperature",
    "thinking",
    "tool_choice.disable_parallel_tool_use",
    "tools.0",
  ]);
});
