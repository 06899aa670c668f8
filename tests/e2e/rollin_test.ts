/** Teacher roll-in: whose turns they are, what the agent gets of them, and what becomes of them when they are asked for again. */

import assert from "node:assert/strict";
import { isTeachersTurn } from "../../shared/core/rollin.ts";
import { ask, stream } from "./dialect_client.ts";
import { countEngineCalls } from "./engine_calls.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, type CreatedTask, type Harness, startHarness, user } from "./harness.ts";
import { joinMessage, joinResponse } from "./named_events.ts";
import { actors, goOn, play, startActors, teachersCall, TOOLS } from "./rollin_play.ts";
import type { TaughtHarness } from "./teacher.ts";
import { until } from "./until.ts";

let taught: TaughtHarness;
let gateway: Harness;

Deno.test.beforeAll(async () => {
  taught = await startActors();
  gateway = taught.gateway;
});
Deno.test.afterAll(async () => {
  await taught[Symbol.asyncDispose]();
});

const RETRY = { "x-stainless-retry-count": "1" };
const TURNS = 8;

async function rows(task: CreatedTask): Promise<Body[]> {
  const { body } = await gateway.admin("GET", `/tasks/${task.id}/result?format=rows`);
  assert.equal(body.reason, null);
  return body.rows;
}

/** Every token that trains was sampled after exactly the tokens before it, the teacher's among them. */
async function assertHolds(task: CreatedTask): Promise<void> {
  const exported = await rows(task);
  const { engine } = gateway.development.services.models.default;
  const sampled = await checkRowsByForceDecoding(engine, exported);
  const turns = await gateway.turns(task.id);
  const policys = turns.filter(({ actor }) => actor === "policy");
  assert.equal(sampled, policys.reduce((sum, { completion_tokens }) => sum + completion_tokens, 0));
}

Deno.test("a beta decides each turn by its seed alone: the same in every task, another for another seed", async () => {
  const played = async (seed: number): Promise<string[]> => {
    const task = await gateway.createTask({ rollin: { beta: 0.5, seed } });
    await play(taught, task, { turns: TURNS });
    await assertHolds(task);
    return await actors(taught, task);
  };
  const expected = (seed: number) =>
    Array.from({ length: TURNS }, (_, position) => {
      return isTeachersTurn({ kind: "mixture", beta: 0.5, seed }, position) ? "teacher" : "policy";
    });
  assert.deepEqual(await played(42), expected(42));
  assert.deepEqual(await played(42), expected(42));
  assert.deepEqual(await played(43), expected(43));
  assert.notDeepEqual(expected(42), expected(43));
  for (const seed of [42, 43]) assert.deepEqual(new Set(expected(seed)), new Set(["teacher", "policy"]));
});

Deno.test("a prefix is the teacher's, examples aside, and the policy goes on from exactly its tokens", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 2 } });
  const examples = [user("An example."), { role: "assistant", content: "Nobody sampled this." }];
  const messages = await play(taught, task, { turns: 4, before: examples });
  const replies = messages.filter(({ role }) => role === "assistant").slice(1);
  assert.deepEqual(replies.map(({ content }) => content), ["I do 0.", "I do 1.", "Student 2.", "Student 3."]);
  const [call] = replies[0].tool_calls;
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["run", { command: 'make 0 < "in"' }]);
  assert.equal(replies[0].reasoning_content.trim(), "Step 0.");
  assert.deepEqual(await actors(taught, task), ["teacher", "teacher", "policy", "policy"]);

  const [row] = await rows(task);
  const { tokenizer } = gateway.development;
  const response = row.tokens.slice(row.prompt_length);
  for (const { start, end, actor, turn } of row.turns.slice(0, 2)) {
    assert.equal(actor, "teacher");
    const said = tokenizer.decode(response.slice(start, end), { skipSpecialTokens: false });
    assert.equal(said, `${teachersCall(String(turn))}<|im_end|>`);
  }
  await assertHolds(task);
  const [turn] = await gateway.turns(task.id);
  assert.deepEqual(turn.teacher, { model: "teacher", weight_version: "t1", dropped_calls: 0, left_out: [] });
  assert.deepEqual([turn.weight_versions, turn.finish_reason, turn.relation], [[], "tool_calls", "root"]);
  assert.equal(turn.sampling.temperature, 0);
  assert.equal((await gateway.task(task.id)).capture.valid, true);
});

Deno.test("a teacher's turn asks the teacher, and not the engine", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const calls = countEngineCalls(gateway);
  await play(taught, task, { turns: 1 });
  assert.equal(calls(), 0);
});

Deno.test("the same request again is the teacher's again: as a retry its answer, else another sample", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const request = { messages: [user("step 0")], tools: TOOLS, return_token_ids: true };
  const first = await gateway.chat(task.key, request);
  const again = await gateway.chat(task.key, request, RETRY);
  assert.deepEqual(again.body, first.body);
  assert.equal(again.headers.get("x-verbatim-turn"), "0");
  const other = await gateway.chat(task.key, request);
  assert.equal(other.headers.get("x-verbatim-turn"), "1");
  assert.deepEqual(await actors(taught, task), ["teacher", "teacher"]);
  const messages = [...request.messages, ...goOn(other.body.choices[0].message, 1)];
  const { body } = await gateway.chat(task.key, { ...request, messages });
  assert.equal(body.choices[0].message.content, "Student 1.");
  const turns = await gateway.turns(task.id);
  assert.deepEqual(turns.map(({ actor, superseded }) => [actor, superseded]), [
    ["teacher", true],
    ["teacher", false],
    ["policy", false],
  ]);
});

Deno.test("two retries at once of a teacher's turn are one label and two equal answers", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { faults } = taught.teacher.engine;
  faults.add({ fault: { kind: "delay", firstTokenMs: 150 } });
  const request = { messages: [user("step 0")], tools: TOOLS };
  const [one, two] = await Promise.all([
    gateway.chat(task.key, request, RETRY),
    gateway.chat(task.key, request, RETRY),
  ]);
  assert.equal(faults.list()[0]!.hits, 1);
  faults.clear();
  assert.deepEqual(one.body, two.body);
  assert.equal((await gateway.turns(task.id)).length, 1);
});

Deno.test("every dialect gets the teacher's action, streamed or not, and goes on with the policy", async () => {
  const responsesTools = TOOLS.map(({ function: declared }) => ({ type: "function", ...declared }));
  const messagesTools = TOOLS.map(({ function: { name, parameters } }) => ({ name, input_schema: parameters }));
  const requests = {
    "/v1/responses": { input: "step 0", tools: responsesTools },
    "/v1/messages": { messages: [user("step 0")], tools: messagesTools, max_tokens: 100 },
  };
  for (const [path, body] of Object.entries(requests)) {
    const [whole, streamed] = await Promise.all([
      gateway.createTask({ rollin: { prefix_turns: 1 } }),
      gateway.createTask({ rollin: { prefix_turns: 1 } }),
    ]);
    const answer = await ask(gateway, whole.key, body, { path });
    const events = await stream(gateway, streamed.key, body, { path });
    const joined = path === "/v1/messages" ? joinMessage(events.events) : joinResponse(events.events);
    const parts: Body[] = answer.content ?? answer.output;
    const types = parts.map(({ type }) => type);
    assert.deepEqual(types, (joined.content ?? joined.output).map(({ type }: Body) => type), path);
    const call = parts.at(-1);
    assert.deepEqual(call.input ?? JSON.parse(call.arguments), { command: 'make 0 < "in"' });
    assert.deepEqual([await actors(taught, whole), await actors(taught, streamed)], [["teacher"], ["teacher"]]);
    const stored = await Promise.all([rows(whole), rows(streamed)]);
    assert.deepEqual(stored[0]![0].tokens, stored[1]![0].tokens);

    const next = path === "/v1/messages"
      ? {
        ...body,
        messages: [user("step 0"), { role: "assistant", content: answer.content }, {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: call.id, content: "step 1" }],
        }],
      }
      : {
        ...body,
        input: [user("step 0"), ...answer.output, {
          type: "function_call_output",
          call_id: call.call_id,
          output: "step 1",
        }],
      };
    await ask(gateway, whole.key, next, { path });
    assert.deepEqual(await actors(taught, whole), ["teacher", "policy"]);
    assert.deepEqual((await gateway.turns(whole.id)).map(({ relation, echo }) => [relation, echo]), [
      ["root", null],
      ["append", "exact"],
    ]);
    await assertHolds(whole);
  }
});

Deno.test("a chat stream of a teacher's turn says what the whole answer says, and no logprobs", async () => {
  const request = {
    messages: [user("step 0")],
    tools: TOOLS,
    logprobs: true,
    return_token_ids: true,
    stream_options: { include_usage: true },
  };
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const events = await gateway.stream(task.key, request);
  const frames = await events.rest();
  assert.equal(events.end, "done");
  const choices = frames.flatMap((frame) => frame.choices);
  assert.ok(choices.every(({ logprobs }) => logprobs === null));
  const { body } = await gateway.chat(task.key, request, RETRY);
  const { message, logprobs, finish_reason, token_ids } = body.choices[0];
  assert.equal(logprobs, null, "nobody sampled them");
  assert.equal(choices.map(({ delta }) => delta.content ?? "").join(""), message.content);
  assert.deepEqual(choices.flatMap(({ delta }) => delta.tool_calls ?? []).map(({ id }: Body) => id), [
    message.tool_calls[0].id,
  ]);
  assert.deepEqual([choices.at(-1).finish_reason, choices.at(-1).token_ids], [finish_reason, token_ids]);
  assert.deepEqual([frames.at(-1).usage, frames.at(-1).verbatim], [body.usage, { turn: 0 }]);
});

Deno.test("a prefix counts the replies of a line: one that is begun anew counts from where it left", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 }, history: "branch" });
  const messages = await play(taught, task, { turns: 3 });
  const say = async (next: readonly Body[]) => {
    const { status, body } = await gateway.chat(task.key, { messages: next, tools: TOOLS, max_tokens: 200 });
    assert.equal(status, 200, JSON.stringify(body));
  };
  // What came after the first reply is summed up.
  await say([...messages.slice(0, 3), user("In short: step 3")]);
  // Nothing is left of the history but its first message.
  await say([messages[0], user("In short: step 4")]);
  assert.deepEqual(await actors(taught, task), ["teacher", "policy", "policy", "policy", "teacher"]);
  await assertHolds(task);
});

Deno.test("a stop string of the agent's ends the teacher's action as it would end the student's", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { body } = await gateway.chat(task.key, { messages: [user("step 0")], stop: [" do"], return_token_ids: true });
  const [choice] = body.choices;
  assert.deepEqual([choice.message.content, choice.finish_reason, choice.matched_stop], ["I", "stop", " do"]);
  const messages = [user("step 0"), choice.message, user("step 1")];
  await gateway.chat(task.key, { messages });
  const [turn] = await gateway.turns(task.id);
  assert.deepEqual([turn.stop, turn.actor], [" do", "teacher"]);
  const [row] = await rows(task);
  assert.ok(row.response.startsWith("<think>\nStep 0.\n</think>\n\nI do"));
  await assertHolds(task);
});

Deno.test("a call that must come, and JSON that must follow, hold the teacher too", async () => {
  const yesOrNo = {
    type: "object",
    properties: { answer: { enum: ["yes", "no"] } },
    required: ["answer"],
    additionalProperties: false,
  };
  const shapes: Body[] = [
    { tools: [{ type: "function", function: { name: "reply", parameters: yesOrNo } }], tool_choice: "required" },
    { response_format: { type: "json_schema", json_schema: { name: "reply", schema: yesOrNo } } },
  ];
  for (const shape of shapes) {
    const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
    // It says something else wherever nothing holds it.
    const { status, body } = await gateway.chat(task.key, { messages: [user("step 0")], ...shape });
    assert.equal(status, 200, JSON.stringify(body));
    const { content, tool_calls: calls } = body.choices[0].message;
    const { answer } = JSON.parse(calls?.[0].function.arguments ?? content);
    assert.ok(["yes", "no"].includes(answer));
    const [turn] = await gateway.turns(task.id);
    assert.deepEqual([turn.actor, turn.basis.constrained], ["teacher", true]);
  }
});

Deno.test("a task's budgets count the teacher's turns", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 5 }, max_turns: 2 });
  const messages = await play(taught, task, { turns: 2 });
  const { status, body } = await gateway.chat(task.key, { messages: [...messages, user("step 2")], tools: TOOLS });
  assert.deepEqual([status, body.error.code], [429, "budget_exceeded"]);
  const { tokens } = await gateway.task(task.id);
  const turns = await gateway.turns(task.id);
  assert.equal(tokens.completion, turns.reduce((sum, turn) => sum + turn.completion_tokens, 0));
});

Deno.test("tasks refuse roll-in that could not be", async () => {
  const refused: [unknown, string, string][] = [
    [{ beta: 1.5, seed: 1 }, "invalid_request", "rollin.beta"],
    [{ beta: 0.5 }, "invalid_request", "rollin.seed"],
    [{ beta: 0.5, seed: 0.5 }, "invalid_request", "rollin.seed"],
    [{ beta: 0.5, seed: 1, prefix_turns: 1 }, "invalid_request", "rollin"],
    [{ seed: 1 }, "invalid_request", "rollin"],
    [{ prefix_turns: -1 }, "invalid_request", "rollin.prefix_turns"],
    [{ prefix_turns: 1, every: 2 }, "unknown_field", "rollin.every"],
    [0.5, "invalid_request", "rollin"],
  ];
  for (const [rollin, code, field] of refused) {
    const { status, body } = await gateway.admin("POST", "/tasks", { rollin });
    assert.deepEqual([status, body.error.code, body.error.details.field], [400, code, field], JSON.stringify(rollin));
  }
  const uncaptured = await gateway.admin("POST", "/tasks", { rollin: { prefix_turns: 1 }, capture: false });
  assert.deepEqual([uncaptured.status, uncaptured.body.error.code, uncaptured.body.error.details.field], [
    400,
    "unsupported",
    "rollin",
  ]);
  await using plain = await startHarness();
  const { status, body } = await plain.admin("POST", "/tasks", { rollin: { beta: 0, seed: 1 } });
  assert.deepEqual([status, body.error.code, body.error.details.field], [400, "unsupported", "rollin"]);
  assert.match(body.error.details.reason, /TEACHER_SGLANG_URL/);
});

Deno.test("a teacher's turn that its client hangs up on is aborted on the teacher, and leaves nothing", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { engine } = taught.teacher;
  engine.faults.add({ fault: { kind: "zombie", afterTokens: 2 } });
  const hangUp = new AbortController();
  const ended = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${task.key}` },
    body: JSON.stringify({ messages: [user("step 0")], tools: TOOLS }),
    signal: hangUp.signal,
  }).catch(() => null);
  await until("the teacher works", () => engine.running === 1);
  hangUp.abort();
  assert.equal(await ended, null);
  await until("the teacher is told", () => engine.running === 0);
  engine.faults.clear();
  await until("no call is in flight", async () => (await gateway.task(task.id)).in_flight === 0);
  assert.equal((await gateway.task(task.id)).turns, 0);
  await play(taught, task, { turns: 2 });
  assert.deepEqual(await actors(taught, task), ["teacher", "policy"]);
});

Deno.test("a task that is finished during a teacher's turn does not get it", async () => {
  const task = await gateway.createTask({ rollin: { prefix_turns: 1 } });
  const { engine } = taught.teacher;
  engine.faults.add({ fault: { kind: "hang", afterTokens: 2 } });
  const answered = gateway.chat(task.key, { messages: [user("step 0")], tools: TOOLS });
  await until("the teacher works", () => engine.running === 1);
  const { body: finished } = await gateway.admin("POST", `/tasks/${task.id}/finish`, { wait_s: 0 });
  assert.deepEqual([finished.reason, finished.result], ["nothing was generated", null]);
  const { status, body } = await answered;
  assert.deepEqual([status, body.error.code], [503, "task_closed"]);
  await until("the teacher is told", () => engine.running === 0);
  engine.faults.clear();
});
