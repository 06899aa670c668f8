/** Dialects mixed on one task: one series, whichever of them a request came in; ids that are never used twice and outlive the process. */

import assert from "node:assert/strict";
import { ask, assertOneSeries, stream } from "./dialect_client.ts";
import { type Body, type HarnessOptions, sharedHarness, startHarness, user } from "./harness.ts";
import { joinMessage, joinResponse } from "./named_events.ts";
import { think, toolCall } from "./replies.ts";

const ROUNDS = 6;
const script = {
  rules: [{
    match: "Begin",
    completions: Array.from(
      { length: ROUNDS },
      (_, k) => think(`Thought ${k}.`) + `Step ${k}.\n` + toolCall("look", { n: k }) + toolCall("run", { n: k }),
    ),
  }],
};

const harness = sharedHarness({ engine: { script } });

const PARAMETERS = { type: "object", properties: { n: { type: "integer" } } };
const NAMES = ["look", "run"];
const CHAT_TOOLS = NAMES.map((name) => ({ type: "function", function: { name, parameters: PARAMETERS } }));
const RESPONSES_TOOLS = NAMES.map((name) => ({ type: "function", name, parameters: PARAMETERS }));
const MESSAGES_TOOLS = NAMES.map((name) => ({ name, input_schema: PARAMETERS }));

/** A reply in no dialect, with the ids it was served under. */
interface Reply {
  readonly id: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
}

async function chat(key: string, replies: readonly Reply[]): Promise<Reply> {
  const messages = [
    { role: "system", content: "Be good." },
    user("Begin"),
    ...replies.flatMap(({ text, calls }): unknown[] => [
      {
        role: "assistant",
        content: text,
        tool_calls: calls.map(({ id, name, arguments: args }) => ({
          id,
          type: "function",
          function: { name, arguments: args },
        })),
      },
      ...calls.map(({ id, name }) => ({ role: "tool", tool_call_id: id, content: `did ${name}` })),
    ]),
  ];
  const body = { messages, tools: CHAT_TOOLS, max_completion_tokens: 500 };
  const { id, choices } = await ask(harness(), key, body, { path: "/v1/chat/completions" });
  const [{ message }] = choices;
  return {
    id,
    text: message.content,
    calls: message.tool_calls.map((call: Body) => ({ id: call.id, ...call.function })),
  };
}

async function messages(key: string, replies: readonly Reply[]): Promise<Reply> {
  const history = replies.flatMap(({ text, calls }): unknown[] => [
    {
      role: "assistant",
      content: [
        { type: "text", text },
        ...calls.map(({ id, name, arguments: args }) => ({ type: "tool_use", id, name, input: JSON.parse(args) })),
      ],
    },
    {
      role: "user",
      content: calls.map(({ id, name }) => ({ type: "tool_result", tool_use_id: id, content: `did ${name}` })),
    },
  ]);
  const body = {
    system: "Be good.",
    max_tokens: 500,
    tools: MESSAGES_TOOLS,
    messages: [{ role: "user", content: "Begin" }, ...history],
  };
  const { id, content } = joinMessage((await stream(harness(), key, body, { path: "/v1/messages" })).events);
  const calls = content.filter((block: Body) => block.type === "tool_use");
  return {
    id,
    text: content.find((block: Body) => block.type === "text").text,
    calls: calls.map((call: Body) => ({ id: call.id, name: call.name, arguments: JSON.stringify(call.input) })),
  };
}

async function responses(key: string, replies: readonly Reply[]): Promise<Reply> {
  const history = replies.flatMap(({ text, calls }): unknown[] => [
    { type: "message", role: "assistant", content: [{ type: "output_text", text }] },
    ...calls.map(({ id, name, arguments: args }) => ({ type: "function_call", call_id: id, name, arguments: args })),
    ...calls.map(({ id, name }) => ({ type: "function_call_output", call_id: id, output: `did ${name}` })),
  ]);
  const body = {
    instructions: "Be good.",
    max_output_tokens: 500,
    tools: RESPONSES_TOOLS,
    input: [user("Begin"), ...history],
  };
  const { id, output } = joinResponse((await stream(harness(), key, body, { path: "/v1/responses" })).events);
  const calls = output.filter((item: Body) => item.type === "function_call");
  return {
    id,
    text: output.find((item: Body) => item.type === "message").content[0].text,
    calls: calls.map((call: Body) => ({ id: call.call_id, name: call.name, arguments: call.arguments })),
  };
}

for (
  const order of [[chat, messages, responses, chat, responses, messages], [responses, chat, messages, messages, chat]]
) {
  Deno.test(`${order.map((dialect) => dialect.name).join(", ")} extend one series`, async () => {
    const task = await harness().createTask();
    const replies: Reply[] = [];
    for (const dialect of order) replies.push(await dialect(task.key, replies));
    assert.deepEqual(replies.map(({ text }) => text), order.map((_, k) => `Step ${k}.`));
    const ids = replies.flatMap(({ id, calls }) => [id, ...calls.map((call) => call.id)]);
    assert.ok(ids.every((id) => id !== ""));
    assert.equal(new Set(ids).size, ids.length);
    const dialects = (await harness().turns(task.id)).map((turn) => turn.dialect);
    assert.deepEqual(dialects, order.map((dialect) => dialect.name));
    // The latest echo of each reply is the one that counts: as served where the next request speaks the same dialect.
    const echoes = order.slice(1).map((dialect, k) => dialect === order[k] ? "exact" : "representation");
    await assertOneSeries(harness(), task, echoes);
  });
}

Deno.test("one request asked again in another dialect is the same answer, under the ids of that dialect", async () => {
  const { key, id } = await harness().createTask({ on_repeat: "replay" });
  const first = await chat(key, []);
  const second = await messages(key, []);
  const third = await responses(key, []);
  assert.deepEqual([second, third], [{ ...first, id: second.id }, { ...first, id: third.id }].map(respelled));
  const digits = [first, second, third].map((reply) => reply.id.replace(/^(chatcmpl-|msg_|resp_)/, ""));
  assert.equal(new Set(digits).size, 1);
  assert.equal((await harness().turns(id)).length, 1);

  function respelled(reply: Reply, k: number): Reply {
    const respell = (text: string) => k === 0 ? JSON.stringify(JSON.parse(text)) : text;
    return { ...reply, calls: reply.calls.map((call) => ({ ...call, arguments: respell(call.arguments) })) };
  }
});

Deno.test("ids name the same answers after a restart", async () => {
  const path = await Deno.makeTempFile({ suffix: ".kv" });
  const options: HarnessOptions = { engine: { script }, environment: { KV_PATH: path } };
  const RESPONSES = { path: "/v1/responses" };
  const body = { instructions: "Be good.", tools: RESPONSES_TOOLS };
  const outputs = (response: Body) =>
    response.output.filter((item: Body) => item.type === "function_call").map((call: Body) => ({
      type: "function_call_output",
      call_id: call.call_id,
      output: "done",
    }));
  try {
    const before = await startHarness(options);
    const task = await before.createTask();
    const one = await ask(before, task.key, { ...body, input: "Begin" }, RESPONSES);
    const two = await ask(before, task.key, { ...body, input: outputs(one), previous_response_id: one.id }, RESPONSES);
    await before[Symbol.asyncDispose]();

    await using after = await startHarness(options);
    await ask(after, task.key, { ...body, input: outputs(two), previous_response_id: two.id }, RESPONSES);
    const references = [one, two].map((response) =>
      response.output.filter((item: Body) => item.type !== "function_call").map(({ id }: Body) => ({
        type: "item_reference",
        id,
      }))
    );
    const calls = [one, two].map((response) => response.output.filter((item: Body) => item.type === "function_call"));
    const input = [
      user("Begin"),
      ...references[0],
      ...calls[0],
      ...outputs(one),
      ...references[1],
      ...calls[1],
      ...outputs(two),
    ];
    await ask(after, task.key, { ...body, input }, RESPONSES);
    const turns = await after.turns(task.id);
    assert.deepEqual(turns.map(({ parent, relation }) => [parent, relation]), [
      [null, "root"],
      [0, "append"],
      [1, "append"],
      [1, "retry"],
    ]);
  } finally {
    await Deno.remove(path).catch(() => {});
  }
});
