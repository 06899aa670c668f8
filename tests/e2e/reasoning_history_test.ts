/** What becomes of reasoning that the template would drop: it stays in the series, or a new row begins as the template has it. */

import assert from "node:assert/strict";
import { agentCalls, trained } from "./agent_calls.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, type CreatedTask, sharedHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";

const CALL = `\n${toolCall("look", { at: "a" })}`;
const harness = sharedHarness({
  engine: {
    script: {
      rules: [
        { match: "Task", completions: [`${think("First.")}Look.${CALL}`, `${think("Second.")}Seen.`] },
        { match: "More", completions: [`${think("Third.")}Again.${CALL}`, `${think("Fourth.")}Done.`] },
        { match: "Plain", completions: ["Yes.", "And yes."] },
      ],
    },
  },
});
const { ask, result } = agentCalls(harness);
const TOOLS = [tool("look", ["at"])];

/** Two user messages, each answered by a call and, after its result, by a word. */
async function twoTasks(task: CreatedTask, echo: (message: Body) => Body = (message) => message): Promise<{
  readonly said: Body[];
  readonly ids: number[][];
}> {
  const said: Body[] = [];
  const ids: number[][] = [];
  for (const word of ["Task", "More"]) {
    said.push(user(word));
    for (let step = 0; step < 2; step++) {
      const got = await ask(task, said, { tools: TOOLS });
      ids.push(got.ids);
      said.push(echo(got.message));
      for (const call of got.message.tool_calls ?? []) {
        said.push({ role: "tool", tool_call_id: call.id, content: "ok" });
      }
    }
  }
  return { said, ids };
}

const withoutReasoning = ({ reasoning_content: _, ...message }: Body): Body => message;

Deno.test("reasoning_history keep: the series stays as it was sampled, earlier reasoning included", async () => {
  const task = await harness().createTask();
  const { ids } = await twoTasks(task);
  const region = await result(task);
  assert.deepEqual([trained(region), region.notes], [ids, []]);
  assert.deepEqual((await harness().turns(task.id)).map((turn) => turn.parent), [null, 0, 1, 2]);
});

for (const [what, echo] of [["echoed", (message: Body) => message], ["not echoed", withoutReasoning]] as const) {
  Deno.test(`reasoning_history template: where the template drops reasoning a new row begins, reasoning ${what}`, async () => {
    const task = await harness().createTask({ reasoning_history: "template" });
    const { ids } = await twoTasks(task, echo);
    const turns = await harness().turns(task.id);
    assert.deepEqual(turns.map((turn) => [turn.parent, turn.relation, turn.echo !== null, turn.role]), [
      [null, "root", false, "main"],
      [0, "append", true, "main"],
      [null, "append", true, "main"],
      [2, "append", true, "main"],
    ]);
    const decisions = await harness().decisions(task.id);
    assert.deepEqual(decisions.map((decision) => decision.verdict), ["ok", "ok", "ok", "ok"]);
    assert.equal(
      decisions[2].effect,
      "began a path, its prompt rendered whole: the template no longer writes the reasoning up to turn 1",
    );
    const { body: region } = await harness().admin("POST", `/tasks/${task.id}/finish`, {});
    assert.deepEqual([trained(region), region.notes, region.other_rows], [ids.slice(2), ["template_rewrite"], 1]);

    const { rows, notes } = await result(task, "?format=rows");
    assert.deepEqual(rows.map((row: Body) => [row.path, row.role]), [[[2, 3], "main"], [[0, 1], "main"]]);
    assert.deepEqual(notes, ["template_rewrite"]);
    assert.deepEqual(rows.map((row: Body) => row.trained_tokens), [
      [...ids[2]!, ...ids[3]!].length,
      [...ids[0]!, ...ids[1]!].length,
    ]);
    await checkRowsByForceDecoding(harness().development.services.models.default.engine, rows);
  });
}

Deno.test("reasoning_history template: the new row's prompt is what the template renders for the whole conversation", async () => {
  const task = await harness().createTask({ reasoning_history: "template" });
  const { said } = await twoTasks(task);
  const { rows } = await result(task, "?format=rows");
  const [row] = rows;
  const { body } = await harness().admin("POST", "/tokenize", { messages: said.slice(0, 5), tools: TOOLS });
  assert.deepEqual(row.tokens.slice(0, row.prompt_length), body.tokens);
  const text = harness().development.tokenizer.decode(row.tokens);
  assert.deepEqual(["First.", "Second.", "Third.", "Fourth."].map((thought) => text.includes(thought)), [
    false,
    false,
    true,
    true,
  ]);
});

Deno.test("reasoning_history template: a series without reasoning goes on", async () => {
  const task = await harness().createTask({ reasoning_history: "template" });
  const first = await ask(task, [user("Plain")]);
  const second = await ask(task, [user("Plain"), first.message, user("Sure?")]);
  const region = await result(task);
  assert.deepEqual([trained(region), region.notes], [[first.ids, second.ids], []]);
});

Deno.test("reasoning_history template: under branch the region says that the line is in several rows", async () => {
  const task = await harness().createTask({ reasoning_history: "template", history: "branch" });
  const { ids } = await twoTasks(task);
  const region = await result(task);
  assert.deepEqual([region.result, region.reason], [null, "the main root has 2 leaves"]);
  const { rows } = await result(task, "?format=rows");
  assert.equal(rows.reduce((sum: number, row: Body) => sum + row.trained_tokens, 0), ids.flat().length);
});
