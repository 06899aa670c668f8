/** `POST /teacher-score/label`: the teacher's answer as an action, and the student's tokens for it. */

import assert from "node:assert/strict";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";
import { asArguments, type Body, user } from "./harness.ts";
import { startTaught, type TaughtHarness } from "./teacher.ts";

const CALL = { name: "run", arguments: { command: "ls -l", times: 2 } };
const TOOLS = [{
  type: "function",
  function: {
    name: "run",
    parameters: {
      type: "object",
      properties: { command: { type: "string" }, times: { type: "integer" } },
      required: ["command"],
    },
  },
}, { type: "function", function: { name: "finish", parameters: { type: "object", properties: {} } } }];

function said(name: string, args: string): string {
  return `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
}

const SCRIPT = [
  {
    match: "list the files",
    completions: [`<think>\nFiles it is.\n</think>\n\nI look.\n${said("run", asArguments(CALL.arguments))}`],
  },
  { match: "say hello", completions: ["Hello there."] },
  { match: "end it", completions: [said("finish", "{}")] },
  { match: "two at once", completions: [`${said("run", '{"command": "a"}')}\n${said("run", '{"command": "b"}')}`] },
  { match: "stumble", completions: ['<tool_call>\n{"name": "run", "arguments": {"comm\n</tool_call>'] },
  { match: "nothing", completions: [" "] },
];

let taught: TaughtHarness;

Deno.test.beforeAll(async () => {
  taught = await startTaught({ teacher: { script: { rules: SCRIPT } } });
});
Deno.test.afterAll(async () => {
  await taught[Symbol.asyncDispose]();
});

async function label(body: Record<string, unknown>): Promise<Body> {
  const { status, body: answer } = await taught.gateway.admin("POST", "/teacher-score/label", {
    tools: TOOLS,
    ...body,
  });
  assert.equal(status, 200, JSON.stringify(answer));
  return answer;
}

/** What the student's own parser makes of target ids. */
async function parsed(ids: number[]): Promise<Body> {
  return (await taught.gateway.admin("POST", "/tokenize/parse", { tokens: ids, tools: TOOLS })).body;
}

Deno.test("label answers a call with its reasoning and text, and target ids that the student's parser reads as the same", async () => {
  const answer = await label({
    system_prompt: "Be an agent.",
    task_prompt: "Work.",
    history: [{ role: "assistant", content: "Let me think.", reasoning_content: "Hm." }, user("list the files now")],
  });
  assert.deepEqual(answer.action, { kind: "tool_call", ...CALL, reasoning: "Files it is.", text: "I look." });
  assert.equal(answer.dropped_calls, 0);
  const read = await parsed(answer.target_ids);
  assert.deepEqual(read.tool_calls.map((call: Body) => [call.function.name, JSON.parse(call.function.arguments)]), [
    [CALL.name, CALL.arguments],
  ]);
  assert.equal(read.reasoning.trim(), "Files it is.");
  assert.equal(read.content.trim(), "I look.");
  assert.equal(answer.target_ids.at(-1), (await qwen3Tokenizer()).addedTokens.get("<|im_end|>"));
});

Deno.test("label tells messages, ends and several calls apart", async () => {
  assert.deepEqual((await label({ task_prompt: "say hello" })).action, { kind: "message", text: "Hello there." });
  assert.deepEqual((await label({ task_prompt: "end it" })).action, { kind: "finish", name: "finish", arguments: {} });
  const two = await label({ task_prompt: "two at once" });
  assert.deepEqual([two.action.arguments, two.dropped_calls], [{ command: "a" }, 1]);
});

Deno.test("label goes on from a ready-made sequence", async () => {
  const { body } = await taught.gateway.admin("POST", "/tokenize", { messages: [user("say hello")] });
  const answer = await label({ input_ids: body.tokens });
  assert.deepEqual(answer.action, { kind: "message", text: "Hello there." });
  assert.ok(answer.target_ids.length > 3);
});

Deno.test("label is null with a reason where the teacher says nothing usable, or fails", async () => {
  const stumbled = await label({ task_prompt: "stumble" });
  assert.deepEqual([stumbled.action, stumbled.reason], [null, "malformed"]);
  const empty = await label({ task_prompt: "nothing" });
  assert.deepEqual([empty.action, empty.reason], [null, "empty"]);
  const cut = await label({ task_prompt: "list the files", max_tokens: 3 });
  assert.deepEqual([cut.action, cut.reason], [null, "truncated"]);
  taught.teacher.engine.faults.add({ fault: { kind: "http", status: 500 } });
  const failed = await label({ task_prompt: "say hello" });
  taught.teacher.engine.faults.clear();
  assert.equal(failed.action, null);
  assert.match(failed.reason, /^engine_failed/);
});

Deno.test("label refuses what names nothing, or two things", async () => {
  for (const body of [{}, { input_ids: [1], task_prompt: "a" }]) {
    const { status, body: answer } = await taught.gateway.admin("POST", "/teacher-score/label", body);
    assert.deepEqual([status, answer.error.code, answer.error.details.field], [400, "invalid_request", "history"]);
  }
});

Deno.test("relabel pairs each stored turn's context with the student's tokens for the teacher's action, and goes on", async () => {
  const { gateway } = taught;
  const task = await gateway.createTask({ group_id: "relabel" });
  const messages: Body[] = [user("list the files")];
  for (let turn = 0; turn < 3; turn++) {
    const { body } = await gateway.chat(task.key, { messages, tools: TOOLS, max_tokens: 6 });
    messages.push(body.choices[0].message, user("list the files"));
  }
  async function relabel(body: Record<string, unknown>): Promise<Body[]> {
    const response = await fetch(`${gateway.url}/teacher-score/relabel`, {
      method: "POST",
      body: JSON.stringify({ group_id: "relabel", tools: TOOLS, max_tokens: 64, ...body }),
    });
    return (await response.text()).trimEnd().split("\n").map((line) => JSON.parse(line));
  }
  const lines = await relabel({});
  assert.equal(lines.length, 4);
  assert.deepEqual([lines.at(-1).done, lines.at(-1).turns], [true, 3]);
  const { result: region } = (await gateway.admin("GET", `/tasks/${task.id}/result`)).body;
  const all = [...region.prompt_token_ids, ...region.completion_token_ids];
  for (const [turn, line] of lines.slice(0, 3).entries()) {
    const { start } = region.turns[turn];
    assert.deepEqual([line.task_id, line.turn], [task.id, turn]);
    assert.deepEqual(line.context_ids, all.slice(0, region.prompt_token_ids.length + start));
  }
  assert.deepEqual(lines[0].action, { kind: "tool_call", ...CALL, reasoning: "Files it is.", text: "I look." });
  const read = await parsed(lines[0].target_ids);
  assert.deepEqual(JSON.parse(read.tool_calls[0].function.arguments), CALL.arguments);

  const rest = await relabel({ after: { task_id: task.id, turn: 0 } });
  assert.deepEqual(rest.slice(0, -1).map(({ turn }) => turn), [1, 2]);
  assert.deepEqual(await relabel({ only: { outcomes: ["completed"] } }), [{ done: true, turns: 0, labelled: 0 }]);
  const [lost] = await relabel({ after: { task_id: "nobody", turn: 0 } });
  assert.equal(lost.error.code, "invalid_request");
});
