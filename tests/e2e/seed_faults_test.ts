/**
 * Situations in which earlier gateways lost, altered or mislabelled what was sampled, one test each; those around the
 * sampling are in seed_faults_service_test.ts. The letter is the situation's, the name says what must happen.
 */

import assert from "node:assert/strict";
import type { Fault } from "../../shared/engine/fault.ts";
import { seededRandom } from "../fixtures/seeded_random.ts";
import { agentCalls, trained } from "./agent_calls.ts";
import { type Body, type CreatedTask, type Harness, sharedHarness, startHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";
import { until } from "./until.ts";

const harness = sharedHarness({
  environment: { MAX_CONTEXT_LEN: "4096" },
  engine: {
    random: seededRandom(3).unit,
    script: {
      rules: [
        { match: "Think", completions: [think("Hm, so it is.") + "Yes.", "And yes again."] },
        {
          match: "Call twice",
          completions: [`Both.\n${toolCall("look", { at: "a" })}\n${toolCall("count", { at: "b" })}`, "Done."],
        },
      ],
    },
  },
});

const TOOLS = [tool("look", ["at"]), tool("count", ["at"])];
const RETRY = { "x-stainless-retry-count": "1" };
const ALL = "main,branch,side,superseded";

const { ask, result } = agentCalls(harness);

Deno.test("A: a reply echoed with its reasoning, without it or with another is the same turn, trained whole", async () => {
  const echoes: readonly ((message: Body) => Body)[] = [
    (message) => message,
    ({ reasoning_content: _, ...message }) => message,
    (message) => ({ ...message, reasoning_content: message.reasoning_content.trim() }),
    (message) => ({ ...message, reasoning_content: "Something else." }),
  ];
  for (const [k, echo] of echoes.entries()) {
    const task = await harness().createTask();
    const first = await ask(task, [user("Think")]);
    assert.equal(first.message.reasoning_content, "Hm, so it is.");
    const second = await ask(task, [user("Think"), echo(first.message), user("Sure?")]);
    assert.deepEqual(trained(await result(task)), [first.ids, second.ids], `echo ${k}`);
  }
});

Deno.test("B: every call and the text of a reply reach the client, and all of it is trained", async () => {
  for (const stream of [false, true]) {
    const task = await harness().createTask();
    const body = { messages: [user("Call twice")], tools: TOOLS, return_token_ids: true };
    let message: Body;
    let ids: number[];
    if (stream) {
      const frames = await (await harness().stream(task.key, body)).rest();
      const deltas = frames.map((frame) => frame.choices[0].delta);
      message = {
        content: deltas.map((delta) => delta.content ?? "").join(""),
        tool_calls: deltas.flatMap((delta) => delta.tool_calls ?? []),
      };
      ids = frames.at(-1).choices[0].token_ids;
    } else ({ message, ids } = await ask(task, body.messages, body));
    assert.equal(message.content.trim(), "Both.");
    assert.deepEqual(
      message.tool_calls.map((call: Body) => [call.function.name, JSON.parse(call.function.arguments)]),
      [
        ["look", { at: "a" }],
        ["count", { at: "b" }],
      ],
    );
    assert.deepEqual(trained(await result(task)), [ids]);
  }
});

/** A long turn, echoed with other white space at its end, then a turn of this length. */
async function drifting(secondTokens: number): Promise<{ first: number[]; second: number[]; region: Body }> {
  const task = await harness().createTask();
  const first = await ask(task, [user("Free")], { max_tokens: 500 });
  const echo = { role: "assistant", content: `${first.message.content} \n` };
  const second = await ask(task, [user("Free"), echo, user("More")], { max_tokens: secondTokens });
  return { first: first.ids, second: second.ids, region: await result(task) };
}

Deno.test("C: a long turn whose echo drifts at its end keeps every sampled token", async () => {
  const { first, second, region } = await drifting(3);
  assert.ok(first.length > 20);
  assert.deepEqual(trained(region), [first, second]);
});

Deno.test("C2: what becomes of a turn does not depend on the length of the next one", async () => {
  const { first, second, region } = await drifting(1024);
  assert.deepEqual(trained(region), [first, second]);
});

Deno.test("D: a retried request is answered again; another sample of it is marked superseded and trains only if asked for", async () => {
  const task = await harness().createTask({ history: "branch" });
  const free = [user("Free")];
  const abandoned = await ask(task, free, { max_tokens: 8 });
  const again = await ask(task, free, { max_tokens: 8 }, RETRY);
  assert.deepEqual([again.turn, again.ids], [abandoned.turn, abandoned.ids]);
  const kept = await ask(task, free, { max_tokens: 8 });
  const next = await ask(task, [...free, kept.message, user("More")], { max_tokens: 8 });
  const turns = await harness().turns(task.id);
  assert.deepEqual(turns.map((turn) => [turn.role, turn.superseded, turn.replays]), [
    ["superseded", true, 1],
    ["main", false, 0],
    ["main", false, 0],
  ]);
  const { rows } = await result(task, "?format=rows");
  assert.deepEqual(rows.map((row: Body) => [row.path, row.role, row.trained_tokens]), [
    [[1, 2], "main", kept.ids.length + next.ids.length],
    [[0], "superseded", 0],
  ]);
  const all = await harness().createTask({ history: "branch", train_roles: ALL.split(",") });
  const one = await ask(all, free, { max_tokens: 8 });
  const two = await ask(all, free, { max_tokens: 8 });
  await ask(all, [...free, two.message, user("More")], { max_tokens: 8 });
  const asked = (await result(all, "?format=rows")).rows;
  assert.equal(asked.find((row: Body) => row.role === "superseded").trained_tokens, one.ids.length);
});

Deno.test("D2: of two samples that say the same, later turns go on from the one whose ids they echo", async () => {
  for (const chosen of [0, 1]) {
    const task = await harness().createTask({ history: "branch", echo: "strict" });
    const asked = [user("Call twice")];
    const samples = [await ask(task, asked, { tools: TOOLS }), await ask(task, asked, { tools: TOOLS })];
    const { message } = samples[chosen]!;
    const results = message.tool_calls.map((call: Body) => ({ role: "tool", tool_call_id: call.id, content: "ok" }));
    await ask(task, [...asked, message, ...results], { tools: TOOLS });
    const turns = await harness().turns(task.id);
    assert.deepEqual([turns[2].parent, turns[chosen].adopted, turns[1 - chosen].superseded], [chosen, true, true]);
  }
});

Deno.test("E: a first prompt longer than the context is refused before it is sampled, and makes no row", async () => {
  const task = await harness().createTask({ max_context_tokens: 40 });
  const { status, body } = await harness().chat(task.key, { messages: [user("long ".repeat(100))] });
  assert.deepEqual([status, body.error.code], [400, "context_length_exceeded"]);
  const region = await result(task);
  assert.deepEqual([region.result, region.reason], [null, "nothing was generated"]);
  assert.deepEqual((await result(task, "?format=rows")).rows, []);
});

Deno.test("F: every row bears its rollout, one rollout a task, and how many rows it has", async () => {
  const seen = new Set<unknown>();
  for (let k = 0; k < 4; k++) {
    const task = await harness().createTask({
      group_id: "prompts",
      history: "branch",
      ...(k < 2 ? { rollout_id: k } : {}),
    });
    const first = await ask(task, [user("Free")], { max_tokens: 4 });
    await ask(task, [user("Free"), first.message, user("One")], { max_tokens: 4 });
    await ask(task, [user("Free"), first.message, user("Other")], { max_tokens: 4 });
    const { rows, rollout_id } = await result(task, `?format=rows&roles=${ALL}`);
    assert.equal(rollout_id, k < 2 ? k : task.id);
    assert.equal(rows.length, 2);
    for (const row of rows) assert.deepEqual([row.rollout_id, row.rows_in_rollout], [rollout_id, 2]);
    seen.add(rollout_id);
  }
  assert.equal(seen.size, 4);
});

/** A call under a fault: how it was answered. Afterwards nothing of it is on record. */
async function underFault(fault: Fault): Promise<{ status: number; code: string; task: CreatedTask }> {
  const { faults } = harness().development.engine;
  const task = await harness().createTask({ on_abort: "fail" });
  faults.add({ fault });
  const { status, body } = await harness().chat(task.key, { messages: [user("Free")], max_tokens: 8 });
  faults.clear();
  assert.deepEqual(await harness().turns(task.id), []);
  assert.deepEqual((await result(task)).reason, "nothing was generated");
  return { status, code: body.error.code, task };
}

Deno.test("G: a generation that the engine aborted is a failure, never a stop, and the task can say so", async () => {
  const aborts = {
    scheduler: [503, "engine_unavailable"],
    user: [502, "engine_failed"],
    queue: [502, "engine_failed"],
  };
  for (const by of ["scheduler", "user", "queue"] as const) {
    const { status, code, task } = await underFault({ kind: "abort", by, afterTokens: 2 });
    assert.deepEqual([status, code], aborts[by], by);
    const { body } = await harness().admin("POST", `/tasks/${task.id}/finish`, { outcome: "aborted" });
    assert.deepEqual([body.outcome, body.result], ["aborted", null]);
  }
});

Deno.test("H: an answer without logprobs is refused, never filled with zeros", async () => {
  for (const problem of ["missing", "short", "long"] as const) {
    const { status, code } = await underFault({ kind: "logprobs", problem });
    assert.deepEqual([status, code], [502, "engine_inconsistent"], problem);
  }
});

Deno.test("P: which weights sampled which token is on record, and rows over too many versions can be left out", async () => {
  const task = await harness().createTask();
  const said: Body[] = [user("Free")];
  const lengths: number[] = [];
  for (const version of ["7", "7", "8"]) {
    const { message, ids } = await updateTo(version, () => ask(task, said, { max_tokens: 5 }));
    lengths.push(ids.length);
    said.push(message, user("More"));
  }
  const { result: region, notes } = await result(task);
  // The gateway was not told of the updates: of the first turn after one it can't know which weights began it.
  assert.deepEqual(
    region.weight_versions.map(({ version, exact }: Body) => [version, exact]),
    [["7", false], ["7", true], ["8", false]],
  );
  const [, , last] = region.turns;
  assert.deepEqual(region.weight_versions[2], { version: "8", start: last.start, end: last.end, exact: false });
  assert.ok(notes.includes("mixed_versions"));
  const narrow = await result(task, "?format=rows&max_version_span=1");
  assert.deepEqual(narrow.rows, []);
  assert.equal((await result(task, "?format=rows&max_version_span=2")).rows.length, 1);
});

/** Runs a call with the engine at this weight version. */
async function updateTo<T>(version: string, call: () => Promise<T>): Promise<T> {
  const response = await fetch(`${harness().development.served.url}/update_weight_version`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ new_version: version, abort_all_requests: false }),
  });
  assert.equal(response.status, 200, await response.text());
  return await call();
}

Deno.test("V: a rewritten history is a branch: the tokens before it are kept, and the reason is on record", async () => {
  const task = await harness().createTask({ history: "branch" });
  const said: Body[] = [{ role: "system", content: "Be good." }, user("Free")];
  const first = await ask(task, said, { max_tokens: 6 });
  said.push(first.message, user("More"));
  const second = await ask(task, said, { max_tokens: 6 });
  const summary = [said[0], user("So far nothing came of it.")];
  const third = await ask(task, summary, { max_tokens: 6 });
  const { rows } = await result(task, "?format=rows");
  assert.equal(
    rows.reduce((sum: number, row: Body) => sum + row.trained_tokens, 0),
    [first, second, third].flatMap((turn) => turn.ids).length,
  );
  assert.deepEqual(rows.map((row: Body) => row.path), [[2], [0, 1]]);
  const decision = (await harness().decisions(task.id))[2];
  assert.deepEqual([decision.relation, decision.verdict, decision.at.message], [
    "fork",
    "violation: rewritten at message 1",
    1,
  ]);
  assert.match(decision.stored, /Free/);
  assert.match(decision.received, /nothing came of it/);
});

Deno.test("W: branches that go on by turns, or at once, each extend their own series", async () => {
  const task = await harness().createTask({ history: "branch", train_roles: ALL.split(",") });
  const root = await ask(task, [user("Free")], { max_tokens: 4 });
  const branches = [0, 1, 2].map((name) => ({
    said: [user("Free"), root.message, user(`Branch ${name}`)] as Body[],
    path: [root.turn],
    ids: [root.ids],
  }));
  const step = async (branch: typeof branches[number]) => {
    const { message, ids, turn } = await ask(task, branch.said, { max_tokens: 4 });
    branch.said.push(message, user("More"));
    branch.path.push(turn);
    branch.ids.push(ids);
  };
  for (let round = 0; round < 3; round++) for (const branch of branches) await step(branch);
  for (let round = 0; round < 3; round++) await Promise.all(branches.map(step));
  const { rows } = await result(task, `?format=rows&roles=${ALL}`);
  assert.equal(rows.length, 3);
  for (const { path, ids } of branches) {
    const row = rows.find((candidate: Body) => candidate.path.at(-1) === path.at(-1));
    assert.deepEqual(row.path, path);
    const response = row.tokens.slice(row.prompt_length);
    assert.deepEqual(row.turns.map(({ start, end }: Body) => response.slice(start, end)), ids);
  }
});

Deno.test("X: whether an answer left whole is on record, and one that did not is adopted once it is echoed", async () => {
  await using own = await startHarness({ engine: { nullReplyTokens: 60_000 } });
  const task = await own.createTask();
  const request = { messages: [user("Free")], logprobs: true, max_tokens: 60_000 };
  await leaveUnread(own, task, request);
  const whole = async () => (await own.turns(task.id))[0];
  await until("the answer counts as undelivered", async () => (await whole()).delivered === false);
  assert.deepEqual([(await whole()).adopted, (await whole()).role], [false, "main"]);
  // The client had what it needed of it, and goes on.
  const { body } = await own.admin("GET", `/tasks/${task.id}/result`);
  const content = own.development.tokenizer.decode(body.result.completion_token_ids, { skipSpecialTokens: true });
  const next = await own.chat(task.key, {
    messages: [...request.messages, { role: "assistant", content }, user("More")],
    max_tokens: 5,
  });
  assert.equal(next.status, 200, JSON.stringify(next.body));
  const turns = await own.turns(task.id);
  assert.deepEqual(turns.map((turn) => [turn.parent, turn.adopted]), [[null, true], [0, false]]);
  await until("the second counts as delivered", async () => (await own.turns(task.id))[1].delivered === true);
  const { body: region } = await own.admin("GET", `/tasks/${task.id}/result`);
  assert.deepEqual(trained(region).map((ids) => ids.length), [60_000, 5]);
});

Deno.test("X2: a stream that was cut before its end leaves no turn, and what the client echoes of it is context", async () => {
  const task = await harness().createTask();
  const { faults } = harness().development.engine;
  faults.add({ fault: { kind: "hang", afterTokens: 20 } });
  const stream = await harness().stream(task.key, { messages: [user("Free")] });
  let partial = "";
  while (partial.length < 5) partial += (await stream.next()).choices[0].delta.content ?? "";
  stream.hangUp();
  await harness().engineIdle();
  faults.clear();
  assert.deepEqual(await harness().turns(task.id), []);

  const said = [user("Free"), { role: "assistant", content: partial }, user("More")];
  const { ids } = await ask(task, said, { max_tokens: 5 });
  const region = await result(task);
  assert.deepEqual(trained(region), [ids]);
  const prompt = harness().development.tokenizer.decode(region.result.prompt_token_ids);
  assert.ok(prompt.includes(partial.trim()), "the echo is rendered");
  const [turn, ...more] = await harness().turns(task.id);
  assert.deepEqual([turn.parent, turn.relation, more.length], [null, "root", 0]);
});

/** Sends a request and reads nothing of its answer; hangs up once the turn is recorded. */
async function leaveUnread(own: Harness, task: CreatedTask, body: Record<string, unknown>): Promise<void> {
  const { hostname, port } = new URL(own.url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const text = JSON.stringify(body);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${task.key}\r\n` +
    `content-length: ${text.length}\r\n\r\n`;
  const writer = connection.writable.getWriter();
  await writer.write(new TextEncoder().encode(head + text));
  writer.releaseLock();
  await until("the turn is recorded", async () => (await own.task(task.id)).turns === 1);
}
