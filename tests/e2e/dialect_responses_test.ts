/** OpenAI Responses, not streamed: bodies, tool loops over every way to name what came before, and refusals. */

import assert from "node:assert/strict";
import { ask, assertOneSeries, post } from "./dialect_client.ts";
import { countEngineCalls } from "./engine_calls.ts";
import { type Body, sharedHarness } from "./harness.ts";
import { think, toolCall } from "./replies.ts";

const harness = sharedHarness({
  environment: { MAX_CONTEXT_LEN: "4096", ENGINE_RETRY_S: "0" },
  engine: {
    script: {
      rules: [
        {
          match: "Work",
          completions: [
            think("First I look.\n") + "I look around. 👀\n" + toolCall("look", { at: "here" }) + "\n" +
            toolCall("run", { path: "x" }),
            think("It went well.") + "All is well.  ",
            "Nothing more to do.",
          ],
        },
        { match: "Count", completions: ["One two three STOP four"] },
      ],
    },
  },
});

const RESPONSES = { path: "/v1/responses" };
const TOOLS = ["look", "run"].map((name) => ({
  type: "function",
  name,
  description: `Does ${name}.`,
  parameters: { type: "object", properties: { path: { type: "string" } } },
  strict: false,
}));

const first = { model: "m", instructions: "Be good.", tools: TOOLS, input: "Work" };

async function asked(key: string, body: Record<string, unknown>): Promise<Body> {
  return await ask(harness(), key, body, RESPONSES);
}

function outputsFor(response: Body): Body[] {
  return response.output.filter((item: Body) => item.type === "function_call").map((call: Body) => ({
    type: "function_call_output",
    call_id: call.call_id,
    output: `result of ${call.name}`,
  }));
}

Deno.test("a response has the API's shape: reasoning, message and calls in order, counts that add up", async () => {
  const { key, id } = await harness().createTask();
  const { headers, body } = await post(harness(), key, { ...first, max_output_tokens: 300 }, RESPONSES);
  assert.equal(headers.get("x-verbatim-turn"), "0");
  const [turn] = await harness().turns(id);
  const digits = /^resp_([0-9a-f]{24})$/.exec(body.id)?.[1] ?? assert.fail(body.id);
  const [, , look, run] = body.output;
  assert.deepEqual(body, {
    id: body.id,
    object: "response",
    created_at: body.created_at,
    status: "completed",
    error: null,
    incomplete_details: null,
    background: false,
    model: "m",
    instructions: "Be good.",
    max_output_tokens: 300,
    metadata: {},
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: TOOLS,
    top_p: 1,
    truncation: "disabled",
    output: [
      {
        id: `rs_${digits}`,
        type: "reasoning",
        summary: [],
        content: [{ type: "reasoning_text", text: "First I look." }],
        status: "completed",
      },
      {
        id: `msg_${digits}`,
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "I look around. 👀", annotations: [], logprobs: [] }],
      },
      ...[look, run].map((call, k) => ({
        id: `fc_${digits}_${k}`,
        type: "function_call",
        status: "completed",
        call_id: call.call_id,
        name: ["look", "run"][k],
        arguments: ['{"at": "here"}', '{"path": "x"}'][k],
      })),
    ],
    usage: {
      input_tokens: turn.prompt_tokens,
      input_tokens_details: { cached_tokens: turn.cached_tokens },
      output_tokens: turn.completion_tokens,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: turn.prompt_tokens + turn.completion_tokens,
    },
  });
  assert.notEqual(look.call_id, run.call_id);
});

Deno.test("items sent back as they were served extend one series, exactly", async () => {
  const task = await harness().createTask();
  const one = await asked(task.key, { ...first, store: false });
  const input = [{ role: "user", content: "Work" }, ...one.output, ...outputsFor(one).reverse()];
  const two = await asked(task.key, { ...first, store: false, input });
  assert.equal(two.output[1].content[0].text, "All is well.  ");
  await asked(task.key, { ...first, input: [...input, ...two.output, { role: "user", content: "More?" }] });
  await assertOneSeries(harness(), task, ["exact", "exact"]);
});

Deno.test("references to served items stand for them", async () => {
  const task = await harness().createTask();
  const one = await asked(task.key, first);
  const refer = (item: Body) => item.type === "function_call" ? item : { type: "item_reference", id: item.id };
  const input = [{ role: "user", content: "Work" }, ...one.output.map(refer), ...outputsFor(one)];
  const two = await asked(task.key, { ...first, input });
  const all = [...input, ...two.output.map((item: Body) => ({ type: "item_reference", id: item.id }))];
  await asked(task.key, { ...first, input: [...all, { role: "user", content: "More?" }] });
  await assertOneSeries(harness(), task, ["representation", "representation"]);
});

Deno.test("previous_response_id goes on from an answer", async () => {
  const task = await harness().createTask();
  const one = await asked(task.key, first);
  const two = await asked(task.key, { ...first, input: outputsFor(one), previous_response_id: one.id });
  assert.equal(two.previous_response_id, one.id);
  await asked(task.key, { ...first, input: "More?", previous_response_id: two.id });
  const turns = await harness().turns(task.id);
  assert.deepEqual(turns.map(({ parent, relation, echo }) => [parent, relation, echo]), [
    [null, "root", null],
    [0, "append", "exact"],
    [1, "append", "exact"],
  ]);
  await assertOneSeries(harness(), task, ["exact", "exact"]);
});

Deno.test("previous_response_id with other instructions is a conversation of its own, rendered whole", async () => {
  const { key, id } = await harness().createTask({ history: "branch" });
  const one = await asked(key, first);
  const { instructions: _none, ...rest } = first;
  await asked(key, { ...rest, instructions: "Be quick.", input: outputsFor(one), previous_response_id: one.id });
  await asked(key, { ...rest, input: outputsFor(one), previous_response_id: one.id });
  const turns = await harness().turns(id);
  assert.deepEqual(turns.map((turn) => turn.parent), [null, null, null]);
  assert.ok(turns[1].prompt_tokens > turns[0].prompt_tokens + 10, "the conversation is in it");
  assert.ok(turns[2].prompt_tokens < turns[1].prompt_tokens, "instructions do not carry over");
});

Deno.test("previous_response_id can go back to any stored answer", async () => {
  const { key, id } = await harness().createTask({ history: "branch" });
  const one = await asked(key, first);
  await asked(key, { ...first, input: outputsFor(one), previous_response_id: one.id });
  const other = [{ ...outputsFor(one)[0], output: "something else" }, outputsFor(one)[1]];
  const again = await asked(key, { ...first, input: other, previous_response_id: one.id });
  await asked(key, { ...first, input: "And?", previous_response_id: again.id });
  assert.deepEqual((await harness().turns(id)).map((turn) => turn.parent), [null, 0, 0, 2]);
});

Deno.test("ids that name nothing, and answers that were not stored, are refused by field", async () => {
  const { key, id } = await harness().createTask();
  const elsewhere = await asked((await harness().createTask()).key, first);
  const unstored = await asked(key, { ...first, store: false });
  const calls = countEngineCalls(harness());
  for (
    const [body, param] of [
      [{ ...first, previous_response_id: "resp_1" }, "previous_response_id"],
      [{ ...first, previous_response_id: elsewhere.id }, "previous_response_id"],
      [{ ...first, previous_response_id: unstored.id }, "previous_response_id"],
      [{ ...first, previous_response_id: unstored.output[0].id }, "previous_response_id"],
      [{ input: [{ type: "item_reference", id: elsewhere.output[1].id }] }, "input.0.id"],
      [{ input: [{ type: "item_reference", id: `${unstored.output[2].id}99` }] }, "input.0.id"],
    ] as const
  ) {
    const { status, body: refused } = await post(harness(), key, body, RESPONSES);
    assert.deepEqual([status, refused.error.code, refused.error.param], [400, "invalid_request", param]);
  }
  assert.equal(calls(), 0);
  assert.equal((await harness().turns(id)).length, 1);
});

Deno.test("encrypted reasoning comes when asked for, and is known when it comes back alone", async () => {
  const task = await harness().createTask();
  const asking = { ...first, store: false, include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" } };
  const one = await asked(task.key, asking);
  const [reasoning, ...others] = one.output;
  assert.deepEqual(reasoning.summary, [{ type: "summary_text", text: "First I look." }]);
  assert.equal("content" in reasoning, false);
  assert.match(reasoning.encrypted_content, /^[A-Za-z0-9+/]+=*$/);
  const { id: _id, status: _status, ...bare } = reasoning;
  const input = [{ role: "user", content: "Work" }, { ...bare, summary: [] }, ...others, ...outputsFor(one)];
  await asked(task.key, { ...asking, input });
  const [, turn] = await harness().decisions(task.id);
  assert.deepEqual([turn.echo, turn.reasoning], ["exact", "referenced"]);
  // Made elsewhere, it is accepted and stands for nothing.
  const foreign = { type: "reasoning", summary: [], encrypted_content: "Zm9yZWlnbg==" };
  await asked(task.key, { ...asking, input: [{ role: "user", content: "Count" }, foreign] });
});

Deno.test("a reply cut by the limit is incomplete, and says in which item", async () => {
  const { key } = await harness().createTask();
  const inText = await asked(key, { input: "Count", max_output_tokens: 3 });
  assert.deepEqual(
    [inText.status, inText.incomplete_details, inText.output[0].status],
    ["incomplete", { reason: "max_output_tokens" }, "incomplete"],
  );
  const inThought = await asked(key, { ...first, max_output_tokens: 4 });
  assert.deepEqual(inThought.output.map((item: Body) => [item.type, item.status]), [
    ["reasoning", "incomplete"],
    ["message", "completed"],
  ]);
  const stopped = await asked(key, { input: "Count", stop: "STOP" });
  assert.deepEqual([stopped.status, stopped.output[0].content[0].text], ["completed", "One two three "]);
});

Deno.test("tools that agents offer by habit are left out and named; what asks for something else is refused", async () => {
  const { key, id } = await harness().createTask();
  const habits = [{ type: "web_search", external_web_access: true }, { type: "custom", name: "apply_patch" }];
  await asked(key, {
    ...first,
    tools: [...habits, ...TOOLS],
    parallel_tool_calls: false,
    truncation: "auto",
    prompt_cache_key: "k",
    client_metadata: { a: "b" },
    include: ["message.output_text.logprobs"],
    text: { verbosity: "low" },
    top_p: 0.5,
  });
  assert.deepEqual((await harness().turns(id))[0].ignored_fields.toSorted(), [
    "client_metadata",
    "include.message.output_text.logprobs",
    "parallel_tool_calls",
    "prompt_cache_key",
    "text.verbosity",
    "tools.0",
    "tools.1",
    "top_p",
    "truncation",
  ]);
  for (
    const [body, code, param] of [
      [{ ...first, tools: [{ type: "file_search" }] }, "unsupported", "tools.0.type"],
      [{ ...first, tools: [{ type: "mcp", server_label: "x" }] }, "unsupported", "tools.0.type"],
      [{ ...first, background: true }, "unsupported", "background"],
      [{ ...first, conversation: "conv_1" }, "unsupported", "conversation"],
      [{ ...first, prompt: { id: "p" } }, "unsupported", "prompt"],
      [{ ...first, top_logprobs: 2 }, "unsupported", "top_logprobs"],
      [{ ...first, text: { format: { type: "poem" } } }, "unsupported", "text.format.type"],
      [{ ...first, tool_choice: { type: "web_search" } }, "unsupported", "tool_choice.type"],
      [{ ...first, tool_choice: { type: "function", name: "fly" } }, "invalid_request", "tool_choice"],
      [{ model: "m" }, "invalid_request", "input"],
      [{ input: [] }, "invalid_request", "input"],
      [
        { input: [{ role: "user", content: [{ type: "input_image", image_url: "data:," }] }] },
        "unsupported",
        "input.0.content",
      ],
    ] as const
  ) {
    const { status, body: refused } = await post(harness(), key, body, RESPONSES);
    assert.deepEqual([status, refused.error.code], [400, code], JSON.stringify(refused));
    assert.equal(refused.error.param, param);
    assert.equal(refused.error.type, "invalid_request_error");
  }
});

Deno.test("an input that is too long is refused in OpenAI's words", async () => {
  const { key } = await harness().createTask();
  const { status, body } = await post(harness(), key, { input: "word ".repeat(5000) }, RESPONSES);
  assert.deepEqual([status, body.error.code], [400, "context_length_exceeded"]);
  assert.match(body.error.message, /^This model's maximum context length is 4096 tokens\. However, you requested/);
});
