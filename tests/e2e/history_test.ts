/** Histories that scaffolds send: what each request is taken for, what of it is exported, and why there may be no result. */

import assert from "node:assert/strict";
import { type Body, sharedHarness, user } from "./harness.ts";
import { tool } from "./replies.ts";

const harness = sharedHarness({
  engine: {
    script: {
      rules: [
        { match: "Task", completions: ["First.", "Second.", "Third.", "Fourth."] },
        { match: "Title", completions: ["A title."] },
      ],
    },
  },
});

const TOOLS = [tool("run", ["path"])];

/** A scaffold that keeps its messages, and what the trainer sees of it. */
class Scaffold {
  readonly id: string;
  readonly #key: string;
  messages: Body[];

  private constructor(task: { id: string; key: string }, messages: Body[]) {
    this.id = task.id;
    this.#key = task.key;
    this.messages = messages;
  }

  static async start(fields: Record<string, unknown> = {}): Promise<Scaffold> {
    return new Scaffold(await harness().createTask(fields), [{ role: "system", content: "You are." }, user("Task")]);
  }

  /** Sends its messages and takes the reply in. */
  async turn(fields: Record<string, unknown> = {}): Promise<void> {
    this.messages.push(await this.ask(this.messages, fields));
  }

  /** Sends these messages and gives the reply. */
  async ask(messages: Body[], fields: Record<string, unknown> = {}): Promise<Body> {
    const { status, body } = await harness().chat(this.#key, { messages, tools: TOOLS, ...fields });
    assert.equal(status, 200, JSON.stringify(body));
    return body.choices[0].message;
  }

  async relations(): Promise<unknown[]> {
    return (await harness().turns(this.id)).map((turn) => [turn.relation, turn.parent, turn.role]);
  }

  async finish(): Promise<Body> {
    return (await harness().admin("POST", `/tasks/${this.id}/finish`, {})).body;
  }
}

Deno.test("a conversation that only grows is one line: every turn extends the one before", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  scaffold.messages.push(user("More"));
  await scaffold.turn();
  scaffold.messages.push(user("And more"));
  await scaffold.turn();
  assert.deepEqual(await scaffold.relations(), [["root", null, "main"], ["append", 0, "main"], ["append", 1, "main"]]);
  const { result, reason, other_rows } = await scaffold.finish();
  assert.deepEqual([reason, other_rows], [null, 0]);
  const { loss_mask: mask, logprobs, turns } = result;
  assert.equal(mask.length, result.completion_token_ids.length);
  assert.equal(logprobs.length, mask.length);
  assert.deepEqual(turns.map((turn: Body) => turn.turn), [0, 1, 2]);
  const sampled = new Set<number>();
  for (const { start, end } of turns) for (let k = start; k < end; k++) sampled.add(k);
  mask.forEach((bit: number, k: number) => {
    assert.equal(bit, sampled.has(k) ? 1 : 0);
    if (bit === 0) assert.equal(logprobs[k], 0);
  });
  assert.equal(turns[0].start, 0);
  assert.equal(turns.at(-1).end, mask.length);
});

Deno.test("a request that ends earlier than the line has shrunk: no result, and the reason", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  const early = [...scaffold.messages];
  scaffold.messages.push(user("More"));
  await scaffold.turn();
  // The history again up to the first reply and nothing after it: an earlier state of the line.
  await scaffold.ask(early.slice(0, 2));
  const body = await scaffold.finish();
  assert.deepEqual([body.result, body.reason], [null, "shrank"]);
  const task = await harness().task(scaffold.id);
  assert.deepEqual(task.capture, { valid: false, reason: "shrank", provisional: false });
  const rows = await harness().admin("GET", `/tasks/${scaffold.id}/result?format=rows`);
  assert.deepEqual([rows.body.rows, rows.body.reason], [[], "shrank"]);
});

Deno.test("a history rewritten at message i goes on from what stands before it: no result, and the reason names i", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  scaffold.messages.push(user("More"));
  await scaffold.turn();
  const rewritten = [...scaffold.messages];
  rewritten[3] = user("Otherwise");
  await scaffold.ask(rewritten);
  const [, , turn] = await harness().turns(scaffold.id);
  assert.deepEqual([turn.relation, turn.related_to, turn.parent], ["append", 0, 0]);
  const [, , decision] = await harness().decisions(scaffold.id);
  assert.deepEqual(
    [decision.verdict, decision.at.message, decision.effect],
    ["violation: rewritten at message 3", 3, "extended the series of turn 0"],
  );
  assert.match(JSON.stringify(decision.stored), /More/);
  assert.match(JSON.stringify(decision.received), /Otherwise/);
  const { result, reason } = await scaffold.finish();
  assert.deepEqual([result, reason], [null, "rewritten at message 3"]);
});

Deno.test("a request that shares the beginning of a prompt and no whole one is a fork", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  await scaffold.ask([scaffold.messages[0], user("Another task")]);
  const [, fork] = await harness().turns(scaffold.id);
  assert.deepEqual([fork.relation, fork.related_to, fork.parent], ["fork", 0, null]);
  const [, decision] = await harness().decisions(scaffold.id);
  assert.deepEqual(
    [decision.verdict, decision.at, decision.effect],
    [
      "violation: rewritten at message 1",
      { unit: 1, message: 1, field: "content" },
      "left turn 0: began a path, its prompt rendered whole",
    ],
  );
  assert.equal((await scaffold.finish()).reason, "rewritten at message 1");
});

Deno.test("another system message begins a root of its own", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  await scaffold.ask([{ role: "system", content: "You are another." }, user("Task")]);
  const [, turn] = await harness().turns(scaffold.id);
  assert.deepEqual([turn.relation, turn.parent], ["side_root", null]);
});

Deno.test("an omitted echo is a branch and, as the last thing that happened, a violation", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  await scaffold.ask([...scaffold.messages.slice(0, 2), user("No echo")]);
  const [, turn] = await harness().turns(scaffold.id);
  assert.deepEqual([turn.relation, turn.related_to, turn.echo], ["branch", 0, "missing"]);
  const { result, reason } = await scaffold.finish();
  assert.deepEqual([result, reason], [null, "rewritten at message 2"]);
});

Deno.test("a side call with other tools does not touch the line, and is a row of its own", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  await scaffold.ask([user("Title")], { tools: undefined });
  scaffold.messages.push(user("More"));
  await scaffold.turn();
  assert.deepEqual(await scaffold.relations(), [
    ["root", null, "main"],
    ["side_root", null, "side"],
    ["append", 0, "main"],
  ]);
  const { result, reason, other_rows } = await scaffold.finish();
  assert.deepEqual([reason, other_rows], [null, 1]);
  assert.deepEqual(result.turns.map((turn: Body) => turn.turn), [0, 2]);
  const { body } = await harness().admin("GET", `/tasks/${scaffold.id}/result?format=rows`);
  assert.deepEqual(body.rows.map((row: Body) => [row.role, row.path, row.trained_tokens > 0]), [
    ["main", [0, 2], true],
    ["side", [1], false],
  ]);
  const side = await harness().admin("GET", `/tasks/${scaffold.id}/result?format=rows&roles=side`);
  assert.deepEqual(side.body.rows.map((row: Body) => row.path), [[1]]);
});

Deno.test("the same messages with other tools extend nothing: the tools are part of the prompt", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  const other = [...scaffold.messages, user("More")];
  await scaffold.ask(other, { tools: [tool("other")] });
  scaffold.messages.push(user("More, with the own tools"));
  await scaffold.turn();
  const [, changed, own] = await harness().turns(scaffold.id);
  assert.deepEqual([changed.parent, changed.tools_changed, changed.role], [null, true, "side"]);
  assert.deepEqual([own.parent, own.relation], [0, "append"]);
  assert.equal((await scaffold.finish()).reason, null);
});

Deno.test("a reply echoed with other text is lenient an append that keeps what was sampled", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  scaffold.messages[2] = { role: "assistant", content: "Not what was said." };
  scaffold.messages.push(user("More"));
  await scaffold.turn();
  const [, turn] = await harness().turns(scaffold.id);
  assert.deepEqual([turn.relation, turn.parent, turn.echo], ["append", 0, "text_changed"]);
  const [, decision] = await harness().decisions(scaffold.id);
  assert.deepEqual([decision.verdict, decision.strict_verdict], ["ok", "violation: rewritten at message 2"]);
  const { result } = await scaffold.finish();
  const { body } = await harness().admin("POST", "/detokenize", { tokens: result.completion_token_ids });
  assert.match(body.text, /^First\./);
  assert.doesNotMatch(body.text, /Not what was said/);
});

Deno.test("a reply echoed with other text is strict a violation", async () => {
  const scaffold = await Scaffold.start({ echo: "strict" });
  await scaffold.turn();
  scaffold.messages[2] = { role: "assistant", content: "Not what was said." };
  scaffold.messages.push(user("More"));
  await scaffold.turn();
  const [, turn] = await harness().turns(scaffold.id);
  assert.equal(turn.parent, null);
  const { result, reason } = await scaffold.finish();
  assert.deepEqual([result, reason], [null, "rewritten at message 2"]);
});

Deno.test("under branch every leaf is a row, each sampled token trains once, and the region says why it is null", async () => {
  const scaffold = await Scaffold.start({ history: "branch" });
  await scaffold.turn();
  const fork = [...scaffold.messages, user("This way")];
  scaffold.messages.push(user("That way"));
  await scaffold.turn();
  await scaffold.ask(fork);
  const { result, reason } = await scaffold.finish();
  assert.deepEqual([result, reason], [null, "the main root has 2 leaves"]);
  const { body } = await harness().admin("GET", `/tasks/${scaffold.id}/result?format=rows`);
  assert.equal(body.rows.length, 2);
  assert.equal(body.reason, null);
  const turns = await harness().turns(scaffold.id);
  const sampled = turns.reduce((sum, turn) => sum + turn.completion_tokens, 0);
  const trained = body.rows.reduce((sum: number, row: Body) => sum + row.trained_tokens, 0);
  assert.equal(trained, sampled);
  for (const row of body.rows) {
    const { response_length: length, sampled_mask, loss_mask, logprobs, tokens, prompt_length } = row;
    assert.deepEqual([sampled_mask.length, loss_mask.length, logprobs.length], [length, length, length]);
    assert.equal(tokens.length, prompt_length + length);
    assert.equal(loss_mask.reduce((sum: number, bit: number) => sum + bit, 0), row.trained_tokens);
    assert.equal(row.trained_tokens_in_rollout, trained);
    assert.equal(row.rows_in_rollout, 2);
    assert.equal(row.rollout_id, scaffold.id);
  }
  assert.equal((await harness().task(scaffold.id)).capture.valid, true);
});

Deno.test("a conversation taken up by another root after the line's end is noted", async () => {
  const scaffold = await Scaffold.start();
  await scaffold.turn();
  await scaffold.ask([{ role: "system", content: "You are new." }, ...scaffold.messages.slice(1), user("More")]);
  const { reason, notes } = await scaffold.finish();
  assert.deepEqual([reason, notes], [null, ["conversation_continued_elsewhere"]]);
});

Deno.test("the main line is that of the root with the marks that the task names", async () => {
  const scaffold = await Scaffold.start({ main: { system_includes: "You are the worker" } });
  await scaffold.ask([{ role: "system", content: "You are the planner" }, user("Task")]);
  await scaffold.ask([{ role: "system", content: "You are the worker" }, user("Task")]);
  const { result } = await scaffold.finish();
  assert.deepEqual(result.turns.map((turn: Body) => turn.turn), [1]);
});
