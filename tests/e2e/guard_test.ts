/** The append-only guard's cases, one by one, through HTTP: what passes, what is a violation, and what comes after one. */

import assert from "node:assert/strict";
import type { Turn } from "../../shared/core/turn.ts";
import type { TurnHistory } from "../../shared/core/turn_history.ts";
import { type Body, type Harness, sharedHarness, user } from "./harness.ts";
import { tool, toolCall } from "./replies.ts";

const harness = sharedHarness({
  engine: {
    script: {
      rules: [{
        match: "Begin",
        completions: ["One.", "Two.\n" + toolCall("run", { path: "a b", n: 1 }), "Three.", "Four.", "Five.", "Six."],
      }],
    },
  },
});

const TOOLS = [tool("run", ["path"])];

/** A run of a scaffold: it sends what it likes and keeps nothing. */
class Run {
  readonly id: string;
  readonly #key: string;

  private constructor(task: { id: string; key: string }) {
    this.id = task.id;
    this.#key = task.key;
  }

  static async start(): Promise<Run> {
    return new Run(await harness().createTask());
  }

  /** Sends messages; every call passes. */
  async send(messages: readonly Body[]): Promise<Body> {
    const { status, body } = await harness().chat(this.#key, { messages, tools: TOOLS });
    assert.equal(status, 200, JSON.stringify(body));
    return body.choices[0].message;
  }

  async finish(): Promise<Body> {
    const { status, body } = await harness().admin("POST", `/tasks/${this.id}/finish`, { reward: 1 });
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }
}

/** Three turns, the second with a call: `[system, user, One, user, Two + call, tool, Three]`. */
async function threeTurns(run: Run): Promise<Body[]> {
  const messages: Body[] = [{ role: "system", content: "Be good." }, user("Begin")];
  messages.push(await run.send(messages), user("Go on"));
  const calling = await run.send(messages);
  messages.push(calling, { role: "tool", tool_call_id: calling.tool_calls[0].id, content: "done" });
  messages.push(await run.send(messages));
  return messages;
}

Deno.test("guard: pure append passes, however the scaffold writes what it was served", async () => {
  const run = await Run.start();
  const messages = await threeTurns(run);
  const rewritten = structuredClone(messages);
  rewritten[2].content = [{ type: "text", text: "One." }];
  rewritten[4].tool_calls[0].function.arguments = '{"n":1.0,"path":"a b"}';
  rewritten[5].content = [{ type: "text", text: "do" }, { type: "text", text: "ne" }];
  await run.send([...rewritten, user("And on")]);
  const { result, reason } = await run.finish();
  assert.equal(reason, null);
  assert.deepEqual(result.turns.map((turn: Body) => turn.turn), [0, 1, 2, 3]);
  for (const name of ["logprobs", "loss_mask"]) {
    assert.equal(result[name].length, result.completion_token_ids.length);
  }
});

Deno.test("guard: history shrank, at every length it can shrink to", async () => {
  for (let kept = 1; kept <= 5; kept++) {
    const run = await Run.start();
    const messages = await threeTurns(run);
    await run.send(messages.slice(0, kept));
    const { result, reason } = await run.finish();
    assert.deepEqual([result, reason], [null, "shrank"], `${kept} messages are left`);
  }
});

Deno.test("guard: prefix rewritten at message i, for every i after the first", async () => {
  for (let at = 1; at <= 5; at++) {
    const run = await Run.start();
    const messages = await threeTurns(run);
    // A reply with other words is a lenient echo: what rewrites it is another message in its place.
    const other = messages[at].role === "assistant" ? user("Instead") : { ...messages[at], content: "Otherwise" };
    await run.send([...messages.with(at, other), user("And on")]);
    const { result, reason } = await run.finish();
    assert.deepEqual([result, reason], [null, `rewritten at message ${at}`]);
  }
});

Deno.test("guard: a first message rewritten is another conversation, and the sample says that it went on there", async () => {
  const run = await Run.start();
  const messages = await threeTurns(run);
  await run.send([...messages.with(0, { role: "system", content: "Be better." }), user("And on")]);
  const { result, reason, notes, other_rows } = await run.finish();
  assert.equal(reason, null);
  assert.deepEqual(result.turns.map((turn: Body) => turn.turn), [0, 1, 2]);
  assert.deepEqual([notes, other_rows], [["conversation_continued_elsewhere"], 1]);
});

Deno.test("guard: role or content change detected", async () => {
  const changes: readonly (readonly [what: string, at: number, change: (message: Body) => Body])[] = [
    ["a user's word becomes the system's", 3, (message) => ({ ...message, role: "system" })],
    ["a user's word becomes the assistant's", 3, (message) => ({ ...message, role: "assistant" })],
    ["a result becomes a user's word", 5, (message) => user(message.content)],
    ["one letter more", 3, (message) => user(`${message.content}.`)],
    ["one blank more", 3, (message) => user(`${message.content} `)],
    ["another case", 1, (message) => user(message.content.toLowerCase())],
    ["another composition of the same character", 1, () => user("Be\u0301gin")],
    ["a result with other words", 5, (message) => ({ ...message, content: "failed" })],
    ["a result of another call", 5, (message) => ({ ...message, tool_call_id: "call_of_nobody" })],
  ];
  for (const [what, at, change] of changes) {
    const run = await Run.start();
    const messages = await threeTurns(run);
    await run.send([...messages.with(at, change(messages[at])), user("And on")]);
    const { result, reason } = await run.finish();
    assert.equal(result, null, what);
    assert.match(reason, /^rewritten at message \d$/, what);
    // An assistant message joins the reply before it: that reply is where the unit begins.
    assert.equal(reason, `rewritten at message ${what.endsWith("assistant's") ? 2 : at}`, what);
  }
});

Deno.test("guard: after a violation calls pass and the run completes", async () => {
  const run = await Run.start();
  const messages = await threeTurns(run);
  const rewritten = [...messages.with(1, user("Begin otherwise")), user("And on")];
  for (let turn = 3; turn < 6; turn++) {
    rewritten.push(await run.send(rewritten), user("And on"));
    const { capture, turns } = await harness().task(run.id);
    assert.deepEqual([capture.valid, capture.reason, turns], [false, "rewritten at message 1", turn + 1]);
  }
  const finished = await run.finish();
  assert.deepEqual([finished.result, finished.reason], [null, "rewritten at message 1"]);
  assert.deepEqual([finished.status, finished.outcome, finished.reward], ["finished", "completed", 1]);
  const { body } = await harness().admin(
    "GET",
    `/tasks/${run.id}/result?format=rows&roles=main,branch,side,superseded`,
  );
  assert.deepEqual([body.rows, body.reason], [[], "rewritten at message 1"]);
  assert.equal((await harness().turns(run.id)).length, 6);
});

/** How a stored turn can fail to fit to those before it. */
const DAMAGES: Record<string, (turn: Turn) => Turn> = {
  "a prompt that was shorter": (turn) => withRecord(turn, { promptTokens: turn.record.promptTokens - 1 }),
  "a prompt that was longer": (turn) => withRecord(turn, { promptTokens: turn.record.promptTokens + 1 }),
  "a token more than recorded": (turn) => ({
    ...turn,
    completion: Uint32Array.of(...turn.completion, 1),
    logprobs: Float64Array.of(...turn.logprobs, -1),
  }),
  "an observation of another length": (turn) => ({ ...turn, observation: turn.observation.slice(1) }),
  "weights of too few tokens": (turn) => withRecord(turn, { weightVersions: [] }),
};

for (const [what, damage] of Object.entries(DAMAGES)) {
  Deno.test(`guard: result null on a length-inconsistent series (${what})`, async () => {
    const run = await Run.start();
    await threeTurns(run);
    await plant(harness(), run.id, damage);
    const { status, body: region } = await harness().admin("GET", `/tasks/${run.id}/result`);
    assert.equal(status, 200, JSON.stringify(region));
    assert.deepEqual([region.result, region.reason], [null, "inconsistent series at turn 3"]);
    const rows = await harness().admin("GET", `/tasks/${run.id}/result?format=rows`);
    assert.deepEqual([rows.status, rows.body.rows, rows.body.reason], [200, [], "inconsistent series at turn 3"]);
    const finished = await run.finish();
    assert.deepEqual([finished.result, finished.reason], [null, "inconsistent series at turn 3"]);
  });
}

function withRecord(turn: Turn, change: Partial<Turn["record"]>): Turn {
  return { ...turn, record: { ...turn.record, ...change } };
}

/** Stores a fourth turn that goes on from the third and is damaged. */
async function plant({ development }: Harness, id: string, damage: (turn: Turn) => Turn): Promise<void> {
  const { store } = development.services;
  const read = await store.getTask(id);
  assert.ok(read !== null);
  const turns = await store.readTurns(read.task, 0, 3);
  const last = turns[2]!;
  const units = last.detail.history.units;
  const history: TurnHistory = {
    ...last.detail.history,
    shared: { turn: 2, units: (last.detail.history.shared?.units ?? 0) + units.length },
    moved: [],
    units: [
      { kind: "assistant", hash: last.detail.history.reply.unit, message: 6, preview: "Three." },
      { kind: "user", hash: "planted", message: 7, preview: "And on" },
    ],
    entries: 8,
    related: { turn: 2, echo: "exact", also: [], reasoning: null },
    follows: { turn: 2, echo: "exact", also: [], reasoning: null },
  };
  const whole = withRecord({ ...last, detail: { ...last.detail, history } }, {
    turn: 3,
    parent: 2,
    digest: "planted",
    promptTokens: last.record.promptTokens + last.completion.length + last.observation.length,
  });
  const turn = damage(whole);
  const outcome = await store.appendTurn({
    read,
    next: { ...read.task, turns: 4 },
    turn,
    staged: await store.stageTurn(read.task, turn),
    expectRepeat: undefined,
    callId: "planted",
  });
  assert.equal(outcome.kind, "committed");
}
