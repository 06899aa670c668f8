/** Teachers that fail: the agent is told, nothing is recorded, the student never acts instead, and the turn can be had later. */

import assert from "node:assert/strict";
import type { FaultRule } from "../../shared/engine/fault.ts";
import type { Script } from "../../shared/engine/script.ts";
import { post } from "./dialect_client.ts";
import { countEngineCalls } from "./engine_calls.ts";
import { type Answered, type Body, type CreatedTask, type Harness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { startTaught, type TaughtHarness } from "./teacher.ts";

const TOOLS = [tool("run", ["command"])];

const TEACHER: Script = {
  rules: [
    { match: "stumble", completions: ['<tool_call>\n{"name": "run", "arguments": {"comm\n</tool_call>'] },
    { match: "nothing", completions: [" "] },
    { match: "act", completions: [toolCall("run", { command: "ls" })] },
    { match: "at once", completions: [toolCall("run", { command: "a" }) + "\n" + toolCall("run", { command: "b" })] },
  ],
};

let taught: TaughtHarness;
let gateway: Harness;

Deno.test.beforeAll(async () => {
  taught = await startTaught({ teacher: { script: TEACHER }, environment: { ENGINE_RETRY_S: "0" } });
  gateway = taught.gateway;
});
Deno.test.afterAll(async () => {
  await taught[Symbol.asyncDispose]();
});

function chat(task: CreatedTask, word: string, fields: Body = {}): Promise<Answered> {
  return gateway.chat(task.key, { messages: [user(word)], tools: TOOLS, ...fields });
}

/** The call failed as the teacher's, for this reason; nothing is recorded, and nobody else was asked. */
async function assertFails(task: CreatedTask, answered: Promise<Answered>, reason: RegExp): Promise<Answered> {
  const calls = countEngineCalls(gateway);
  const answer = await answered;
  const { status, body, headers } = answer;
  assert.deepEqual([status, body.error.code], [502, "teacher_failed"], JSON.stringify(body));
  assert.match(body.error.message, reason);
  assert.equal(headers.get("x-verbatim-turn") ?? "none", "none");
  assert.equal(calls(), 0, "the student is not asked");
  const { turns, tokens } = await gateway.task(task.id);
  assert.deepEqual([turns, tokens], [0, { prompt: 0, completion: 0 }]);
  return answer;
}

Deno.test("a teacher that decides nothing that can be read is teacher_failed, with the reason", async () => {
  const words: [string, Body, RegExp][] = [
    ["stumble", {}, /malformed/],
    ["nothing", {}, /empty/],
    ["act", { max_tokens: 4 }, /truncated/],
  ];
  for (const [word, fields, reason] of words) {
    const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
    const { headers, body } = await assertFails(task, chat(task, word, fields), reason);
    assert.equal(headers.get("x-should-retry"), "true");
    assert.equal(body.error.type !== undefined, true, "in the dialect's shape");
  }
});

Deno.test("what the student's parser would read otherwise than the teacher meant it is teacher_failed", async () => {
  // Words to a teacher whose calls look otherwise; a call to the student.
  const words = toolCall("run", { command: "rm" });
  await using other = await startTaught({
    teacher: { script: { rules: [{ match: "act", completions: [words] }] } },
    environment: { TEACHER_FORMAT: "mistral" },
  });
  const task = await other.gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { status, body } = await other.gateway.chat(task.key, { messages: [user("act")], tools: TOOLS });
  assert.deepEqual([status, body.error.code], [502, "teacher_failed"]);
  assert.match(body.error.message, /does not say what it decided/);
  assert.equal((await other.gateway.task(task.id)).turns, 0);
});

Deno.test("an action whose student's tokens do not fit in the turn is teacher_failed", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { body } = await chat(task, "act", { return_token_ids: true });
  const { length } = body.choices[0].token_ids;
  const tight = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  await assertFails(tight, chat(tight, "act", { max_tokens: length - 1 }), /takes \d+ tokens/);
  const { status } = await chat(tight, "act", { max_tokens: length });
  assert.equal(status, 200);
});

const FAULTS: readonly (readonly [string, FaultRule["fault"]])[] = [
  ["answers 500", { kind: "http", status: 500 }],
  ["answers 400", { kind: "http", status: 400, body: "no" }],
  ["breaks the connection", { kind: "cut", afterTokens: 1 }],
  ["aborts", { kind: "abort", by: "scheduler", status: 500 }],
  ["leaves logprobs out", { kind: "logprobs", problem: "missing" }],
  ["tells another id than it sampled", { kind: "output_id", at: 0, id: 5 }],
];

for (const [what, fault] of FAULTS) {
  Deno.test(`a teacher that ${what} is teacher_failed; once it is well, the same request is its turn`, async () => {
    const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
    const { faults } = taught.teacher.engine;
    faults.add({ fault });
    await assertFails(task, chat(task, "act"), /engine_/);
    faults.clear();
    const { status, body } = await chat(task, "act");
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual((await gateway.turns(task.id)).map(({ actor, relation }) => [actor, relation]), [
      ["teacher", "retry"],
    ]);
    assert.equal((await gateway.task(task.id)).capture.valid, true);
  });
}

Deno.test("every dialect tells a failed teacher in its own shape, and streams tell it before they begin", async () => {
  const { faults } = taught.teacher.engine;
  faults.add({ fault: { kind: "http", status: 500 } });
  const requests: [string, Body][] = [
    ["/v1/chat/completions", { messages: [user("act")] }],
    ["/v1/responses", { input: "act" }],
    ["/v1/messages", { messages: [user("act")], max_tokens: 50 }],
  ];
  for (const [path, body] of requests) {
    for (const stream of [false, true]) {
      const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
      const answer = await post(gateway, task.key, { ...body, stream }, { path });
      assert.equal(answer.status, 502, `${path} ${stream}`);
      assert.equal(answer.headers.get("x-should-retry"), "true");
      assert.match(JSON.stringify(answer.body), /The turn is the teacher's/);
      assert.equal((await gateway.task(task.id)).turns, 0);
    }
  }
  faults.clear();
});

Deno.test("further calls that a teacher makes at once are left out, and the turn says how many", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { body } = await chat(task, "at once");
  const calls: Body[] = body.choices[0].message.tool_calls;
  assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments)), [{ command: "a" }]);
  assert.equal((await gateway.turns(task.id))[0].teacher.dropped_calls, 1);
});

Deno.test("stops that are regular expressions end no teacher's action", async () => {
  const task = await gateway.createTask({
    rollin: { prefix_turns: 1 },
    sampling: { fixed: { stop_regex: ["l.s"] } },
  });
  const { headers } = await assertFails(task, chat(task, "act"), /stop_regex/);
  assert.equal(headers.get("x-should-retry"), "false");
});

Deno.test("a teacher with a format of its own acts in the student's, but can't be held to a grammar of it", async () => {
  const xml = "<tool_call>\n<function=run>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>";
  await using other = await startTaught({
    teacher: { script: { rules: [{ match: "act", completions: [xml] }] } },
    environment: { TEACHER_FORMAT: "qwen3_coder" },
  });
  const task = await other.gateway.createTask({ rollin: { prefix_turns: 1 } });
  const request = { messages: [user("act")], tools: TOOLS };
  const { body } = await other.gateway.chat(task.key, request);
  const [call] = body.choices[0].message.tool_calls;
  assert.deepEqual(JSON.parse(call.function.arguments), { command: "ls -l" });
  const { body: result } = await other.gateway.admin("GET", `/tasks/${task.id}/result?format=rows`);
  // As the student's template writes a reply without reasoning.
  assert.equal(result.rows[0].response, think("") + toolCall("run", { command: "ls -l" }) + "<|im_end|>");

  const held = await other.gateway.createTask({ rollin: { prefix_turns: 1 } });
  const refused = await other.gateway.chat(held.key, { ...request, tool_choice: "required" });
  assert.deepEqual([refused.status, refused.body.error.code], [502, "teacher_failed"]);
  assert.match(refused.body.error.message, /grammar/);
  assert.equal(refused.headers.get("x-should-retry"), "false");
});
