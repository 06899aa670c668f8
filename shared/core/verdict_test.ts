import assert from "node:assert/strict";
import { conversationOf, WrittenTask } from "../../tests/fixtures/conversations.ts";
import { forestOf } from "./forest.ts";
import type { TurnEntry } from "./forest_node.ts";
import { verdictText } from "./judgement.ts";
import { leaves } from "./leaves.ts";
import { matchesMain } from "./main_selector.ts";
import { judge, type PolicyOptions } from "./verdict.ts";

const START = ["s:be good", "u:do it"];
const SECOND = [...START, "a:say|run()#1", "t#1:done"];
const THIRD = [...SECOND, "a:more|run()#2", "t#2:done again"];

const APPEND_ONLY: PolicyOptions = { history: "append_only", echo: "lenient", final: true };
const STRICT: PolicyOptions = { ...APPEND_ONLY, echo: "strict" };
const BRANCH: PolicyOptions = { history: "branch", echo: "strict", final: true };

/** The plain conversation of three turns. */
function plainTask(): WrittenTask {
  const task = new WrittenTask();
  task.send(START, "say|run()#1");
  task.send(SECOND, "more|run()#2");
  task.send(THIRD, "end");
  return task;
}

function verdicts(task: WrittenTask, policy = APPEND_ONLY): string[] {
  return judge(task.forest, policy).decisions.map(({ verdict }) => verdictText(verdict));
}

function roles(task: WrittenTask, policy = APPEND_ONLY): string[] {
  return judge(task.forest, policy).turns.map(({ role }) => role);
}

Deno.test("judge: pure append passes", () => {
  const judgement = judge(plainTask().forest, APPEND_ONLY);
  assert.deepEqual(judgement.capture, { valid: true, reason: null });
  assert.deepEqual(judgement.mainLine, [0, 1, 2]);
  assert.deepEqual(judgement.notes, []);
});

Deno.test("judge: a history that shrank is invalid", () => {
  const task = plainTask();
  task.send(SECOND, "again");
  assert.deepEqual(judge(task.forest, APPEND_ONLY).capture, { valid: false, reason: "shrank" });
  const at = judge(task.forest, APPEND_ONLY).decisions[3]!.at;
  assert.deepEqual([at?.unit, at?.message, at?.field, at?.received], [4, 4, "end", null]);
});

Deno.test("judge: a prefix rewritten at message i is invalid, and says where", () => {
  for (
    const [message, word, field] of [[0, "s:be bad", "content"], [1, "u:do that", "content"], [
      3,
      "t#1:failed",
      "content",
    ]] as const
  ) {
    const task = plainTask();
    const rewritten = [...THIRD, "a:end", "u:go"];
    rewritten[message] = word;
    task.send(rewritten, "x");
    const judgement = judge(task.forest, APPEND_ONLY);
    if (message === 0) {
      // Another first unit is another root: a side call as long as the main line is not taken up there.
      assert.deepEqual(judgement.capture, { valid: true, reason: null });
      assert.deepEqual(judgement.notes, ["conversation_continued_elsewhere"]);
      continue;
    }
    assert.deepEqual(judgement.capture, { valid: false, reason: `rewritten at message ${message}` });
    const { at } = judgement.decisions[3]!;
    assert.deepEqual([at?.unit, at?.message, at?.field, at?.received], [
      message,
      message,
      field,
      word.replace(/^.*?:/, ""),
    ]);
  }
});

Deno.test("judge: a role change is detected", () => {
  const task = plainTask();
  task.send([...SECOND.slice(0, 3), "u:done", ...THIRD.slice(4), "a:end", "u:go"], "x");
  const judgement = judge(task.forest, APPEND_ONLY);
  assert.deepEqual(judgement.capture, { valid: false, reason: "rewritten at message 3" });
  assert.deepEqual(judgement.decisions[3]!.at, {
    unit: 3,
    message: 3,
    field: "role",
    stored: "tool",
    received: "user",
  });
});

Deno.test("judge: a content change is detected, white space included", () => {
  const task = plainTask();
  task.send([...START.slice(0, 1), "u:do it ", ...THIRD.slice(2), "a:end", "u:go"], "x");
  assert.equal(judge(task.forest, APPEND_ONLY).capture.reason, "rewritten at message 1");
});

Deno.test("judge: an omitted echo is a rewrite where its reply belongs", () => {
  const task = new WrittenTask();
  task.send(START, "badly formed");
  task.send([...START, "u:try again"], "say|run()#1");
  task.send([...START, "u:try again", "a:say|run()#1", "t#1:done"], "end");
  assert.deepEqual(verdicts(task), ["ok", "violation: rewritten at message 2", "ok"]);
  assert.deepEqual(roles(task, BRANCH), ["branch", "main", "main"]);
});

Deno.test("judge takes a repaired call for an echo, and under strict for a rewrite", () => {
  const task = new WrittenTask();
  task.send(START, 'say|run({"a)#1');
  task.send([...START, "a:say|run({})#1", "t#1:done"], "end");
  assert.deepEqual(judge(task.forest, APPEND_ONLY).capture, { valid: true, reason: null });
  const strict = judge(task.forest, STRICT);
  assert.deepEqual(strict.capture, { valid: false, reason: "rewritten at message 2" });
  assert.deepEqual(strict.decisions[1]!.at, {
    unit: 2,
    message: 2,
    field: "tool_calls",
    stored: 'run({"a) #1',
    received: "run({}) #1",
  });
});

Deno.test("judge finds the main root: the first marked, else with tools, else appended to, else the first", () => {
  const title = ["s:make titles", "u:do it"];
  const task = new WrittenTask();
  task.send(title, "A title", { tools: [] });
  task.send(START, "say|run()#1");
  assert.deepEqual(roles(task), ["side", "main"]);

  const toolless = new WrittenTask();
  toolless.send(title, "A title", { tools: [] });
  assert.deepEqual(roles(toolless), ["main"]);
  toolless.send(START, "say", { tools: [] });
  toolless.send([...START, "a:say", "u:go"], "end", { tools: [] });
  assert.deepEqual(roles(toolless), ["side", "main", "main"]);

  const marked = new WrittenTask();
  marked.send(START, "say|run()#1", { selected: false });
  marked.send(title, "A title", { tools: [], selected: true });
  assert.deepEqual(roles(marked), ["side", "main"]);
});

Deno.test("judge notes where marks of the main line were asked for and never seen", () => {
  const task = new WrittenTask();
  task.send(START, "say", { selected: false });
  assert.deepEqual(judge(task.forest, { ...APPEND_ONLY, hasSelector: true }).notes, ["main_selector_matched_nothing"]);
});

Deno.test("judge notes where another root took up the main line's history after its last turn", () => {
  const task = plainTask();
  task.send([...THIRD, "a:end", "u:go"], "x", { tools: ["run", "look"] });
  const judgement = judge(task.forest, APPEND_ONLY);
  assert.deepEqual(judgement.capture, { valid: true, reason: null });
  assert.deepEqual(judgement.notes, ["conversation_continued_elsewhere"]);
  assert.deepEqual(judgement.turns.map(({ role }) => role), ["main", "main", "main", "side"]);
  assert.equal(judgement.decisions[3]!.toolsChanged, true);
});

Deno.test("judge marks a sample that was never echoed while another was as superseded", () => {
  const task = new WrittenTask();
  task.send(START, "one|run()#1");
  task.send(START, "two|run()#2");
  assert.deepEqual(roles(task), ["branch", "main"]);
  task.send([...START, "a:one|run()#1", "t#1:done"], "end");
  const judgement = judge(task.forest, APPEND_ONLY);
  assert.deepEqual(judgement.turns.map(({ role, adopted }) => [role, adopted]), [
    ["main", true],
    ["superseded", false],
    ["main", false],
  ]);
  assert.deepEqual(judgement.capture, { valid: true, reason: null });
});

Deno.test("judge counts replays and takes them for requests", () => {
  const task = new WrittenTask();
  task.send(START, "say|run()#1");
  task.forest.addReplay(0);
  task.send(SECOND, "end");
  task.forest.addReplay(0);
  const { decisions, turns, capture } = judge(task.forest, APPEND_ONLY);
  assert.deepEqual(
    decisions.map((
      { request, turn, kind, relation, relatedTo, verdict },
    ) => [request, turn, kind, relation, relatedTo, verdict.type]),
    [
      [0, 0, "turn", "root", null, "ok"],
      [1, 0, "replay", "retry", 0, "replay"],
      [2, 1, "turn", "append", 0, "ok"],
      [3, 0, "replay", "retry", 0, "shrank"],
    ],
  );
  assert.deepEqual(turns.map(({ replays }) => replays), [2, 0]);
  assert.equal(capture.reason, "shrank");
});

Deno.test("judge gives a failed request no number, and its failure no weight", () => {
  const task = plainTask();
  task.send(START, null);
  const { decisions, capture } = judge(task.forest, APPEND_ONLY);
  assert.deepEqual(decisions.map(({ request }) => request), [0, 1, 2, null]);
  assert.deepEqual(capture, { valid: true, reason: null });
});

Deno.test("leaves gives one row a leaf, the main line first", () => {
  const task = plainTask();
  task.send([...START, "u:summary"], "x");
  task.send([...START, "u:summary", "a:x", "u:go"], "y");
  const judgement = judge(task.forest, BRANCH);
  assert.deepEqual(leaves(task.forest, judgement), [
    { turn: 4, role: "main", path: [3, 4] },
    { turn: 2, role: "branch", path: [0, 1, 2] },
  ]);
  assert.deepEqual(judgement.capture, { valid: true, reason: null });
});

Deno.test("judge tells under branch a conversation that was left from a side call", () => {
  const task = plainTask();
  task.send([...SECOND, "u:sum it up"], "a summary");
  task.send([...START, "a:say|run()#1", "t#1:otherwise"], "other|run()#5");
  task.send([...START, "a:say|run()#1", "t#1:otherwise", "a:other|run()#5", "t#5:x"], "end");
  task.send([...THIRD, "a:end", "u:go"], "last");
  assert.deepEqual(roles(task, BRANCH), ["main", "main", "main", "side", "branch", "branch", "main"]);
  assert.deepEqual(roles(task, APPEND_ONLY), ["main", "main", "main", "side", "side", "side", "main"]);
});

Deno.test("forestOf puts replays and failures between the turns they came between", () => {
  const task = new WrittenTask();
  task.send(START, null);
  task.send(START, "say|run()#1");
  task.forest.addReplay(0);
  task.send(SECOND, "end");
  const turns = task.forest.entries.filter((entry): entry is TurnEntry => entry.kind === "turn");
  const failed = task.forest.entries[0]!;
  assert.ok(failed.kind === "failed");
  const again = forestOf(turns, [
    { type: "failed", history: failed.history, after: 0 },
    { type: "replayed", turn: 0, after: 1 },
  ]);
  assert.deepEqual(judge(again, APPEND_ONLY), judge(task.forest, APPEND_ONLY));
});

Deno.test("matchesMain wants every mark that the selector names", () => {
  const request = { conversation: conversationOf(START), header: (name: string) => name === "x-session" ? "1" : null };
  assert.equal(matchesMain(null, request), null);
  assert.equal(
    matchesMain({ toolsInclude: "run", systemIncludes: "good", header: { "x-session": "1" } }, request),
    true,
  );
  assert.equal(matchesMain({ toolsInclude: "look" }, request), false);
  assert.equal(matchesMain({ systemIncludes: "bad" }, request), false);
  assert.equal(matchesMain({ header: { "x-session": "2" } }, request), false);
});

Deno.test("judge takes no root for the main one whose requests all failed, where another of its kind was served", () => {
  for (const tools of [["run"], []]) {
    const task = new WrittenTask();
    task.send(["s:at noon", "u:do it"], null, { tools });
    task.send(["s:at one", "u:do it"], "done", { tools });
    task.send(["s:at one", "u:do it", "a:done", "u:more"], "more done", { tools });
    const judged = judge(task.forest, { history: "append_only", echo: "lenient", final: true });
    assert.deepEqual([judged.mainLine, judged.capture.valid], [[0, 1], true]);
    assert.deepEqual(judged.turns.map(({ role }) => role), ["main", "main"]);
  }
});

Deno.test("judge finds nothing generated where the only root with tools failed: what had none was on the side", () => {
  const task = new WrittenTask();
  task.send(["s:worker", "u:do it"], null);
  task.send(["u:a title, please"], "Title", { tools: [] });
  const judged = judge(task.forest, { history: "append_only", echo: "lenient", final: true });
  assert.deepEqual([judged.mainLine, judged.turns.map(({ role }) => role)], [[], ["side"]]);
});
