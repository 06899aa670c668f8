import assert from "node:assert/strict";
import { assistantOf, conversationOf, messagesOf, requestOf, WrittenTask } from "../../tests/fixtures/conversations.ts";
import { Forest } from "./forest.ts";
import { locate, type Located } from "./locate.ts";
import { turnHistory } from "./record_history.ts";
import { requestUnits } from "./request_units.ts";

const START = ["s:be good", "u:do it"];

/** What of a place is easily told: relation, turn, grade, and what is extended with how many messages. */
function place({ relation, relatedTo, echo, extend }: Located): unknown[] {
  return [relation, relatedTo, echo, extend === null ? null : [extend.turn, extend.append.length]];
}

Deno.test("locate appends to the turn whose reply comes back", () => {
  const task = new WrittenTask();
  assert.deepEqual(place(task.send(START, "say|run()#1")), ["root", null, null, null]);
  const second = [...START, "a:say|run()#1", "t#1:done"];
  assert.deepEqual(place(task.send(second, "more")), ["append", 0, "exact", [0, 1]]);
  assert.deepEqual(place(task.send([...second, "a:more", "u:and"], "end")), ["append", 1, "exact", [1, 1]]);
});

Deno.test("locate prefers the longest whole prompt even where its reply is missing, and extends the turn before it", () => {
  const task = new WrittenTask();
  task.send(START, "say|run()#1");
  const second = [...START, "a:say|run()#1", "t#1:done"];
  task.send(second, "badly formed");
  const third = task.send([...second, "u:try again"], "well formed");
  assert.deepEqual(place(third), ["branch", 1, "missing", [0, 2]]);
  assert.deepEqual(third.at, { unit: 4, message: 4, field: "role", stored: "assistant", received: "user" });
});

Deno.test("locate chooses among samples of one prompt the one whose reply came back, else the latest", () => {
  const task = new WrittenTask();
  task.send(START, "one|run()#1");
  assert.deepEqual(place(task.send(START, "two|run()#2")), ["retry", 0, null, null]);
  task.send(START, "two|run()#3");
  const next = (echo: string) => place(task.peek([...START, echo, "u:go"]));
  assert.deepEqual(next("a:one|run()#1"), ["append", 0, "exact", [0, 1]]);
  assert.deepEqual(next("a:two|run()#2"), ["append", 1, "exact", [1, 1]]);
  assert.deepEqual(next("a:two|run()#9"), ["append", 2, "ids_rewritten", [2, 1]]);
  assert.deepEqual(next("a:one|run(1)#1"), ["append", 0, "args_rewritten", [0, 1]]);
});

Deno.test("locate extends nothing under strict where the echo says something else", () => {
  const task = new WrittenTask();
  task.send(START, "say|run()#1");
  const repaired = [...START, "a:say|run(1)#1", "t#1:done"];
  assert.deepEqual(place(task.send(repaired, "more", { echo: "strict" })), ["append", 0, "args_rewritten", null]);
  const next = [...repaired, "a:more", "u:go"];
  assert.deepEqual(place(task.send(next, "end", { echo: "strict" })), ["append", 1, "exact", [1, 1]]);
});

Deno.test("locate renders a request whole whose tools or template settings differ, and still says what it goes on from", () => {
  const task = new WrittenTask();
  task.send(START, "say");
  const next = [...START, "a:say", "u:sum it up"];
  const other = task.send(next, "sum", { tools: [] });
  assert.deepEqual(place(other), ["append", 0, "exact", null]);
  assert.equal(other.toolsChanged, true);
  const thinking = task.send([...next, "a:sum", "u:go"], "x", { settings: { enable_thinking: true } });
  assert.deepEqual(place(thinking), ["append", 1, "exact", null]);
  // Back with the first tools: the series of the first turn goes on, what came between is context.
  assert.deepEqual(place(task.send([...next, "a:sum", "u:on"], "y")), ["append", 1, "exact", [0, 3]]);
});

Deno.test("locate finds where a request leaves every known prompt", () => {
  const task = new WrittenTask();
  task.send([...START, "u:the old word"], "say");
  const fork = task.send([...START, "u:the new word"], "x");
  assert.deepEqual(place(fork), ["fork", 0, null, null]);
  assert.deepEqual(fork.at, {
    unit: 2,
    message: 2,
    field: "content",
    stored: "the old word",
    received: "the new word",
  });
  const shorter = task.send(START, "y");
  assert.deepEqual(place(shorter), ["fork", 1, null, null]);
  assert.deepEqual(shorter.at, { unit: 2, message: 2, field: "end", stored: "user: the new word", received: null });
  assert.deepEqual(place(task.send(["s:another", "u:do it"], "z")), ["side_root", null, null, null]);
});

Deno.test("locate takes what continues the prompt's last turn for the reply, in one message or in two", () => {
  const task = new WrittenTask();
  task.send([...START, "a:It is"], " so");
  for (const [echo, grade] of [[["a:It is", "a: so"], "exact"], [["a:It is so"], "representation"]] as const) {
    assert.deepEqual(place(task.peek([...START, ...echo, "u:go"])), ["append", 0, grade, [0, 1]]);
  }
  assert.deepEqual(place(task.peek([...START, "a:It is", "u:go"])), ["branch", 0, "missing", null]);
  assert.deepEqual(place(task.peek([...START, "a:It isn't", "u:go"])), ["fork", 0, null, null]);
});

Deno.test("locate relates a retry to a request that failed, and nothing else", () => {
  const task = new WrittenTask();
  task.send(START, null);
  assert.deepEqual(place(task.send(START, "say")), ["retry", null, null, null]);
  const second = [...START, "a:say", "u:go"];
  task.send(second, null);
  assert.deepEqual(place(task.send([...second, "u:more"], null)), ["append", 0, "exact", [0, 2]]);
});

Deno.test("locate looks at no more than the request's own length, however many turns are stored", () => {
  const task = new WrittenTask();
  const long = [...START];
  for (let k = 0; k < 40; k++) {
    for (let again = 0; again < 5; again++) task.send(long, `say ${k}.${again}|run()#${k}.${again}`);
    task.send([...long, "u:aside"], "aside");
    task.send([...long.slice(0, -1), `u:edit ${k}`], "edited");
    long.push(`a:say ${k}.1|run()#${k}.1`, `t#${k}.1:result ${k}`);
  }
  assert.equal(task.forest.turns, 280);
  const request = requestOf(long);
  const appended = locate(task.forest, request, { echo: "lenient" });
  assert.deepEqual(place(appended), ["append", 39 * 7 + 1, "exact", [39 * 7 + 1, 1]]);
  const limit = 2 * request.units.length + 10;
  assert.ok(appended.comparisons <= limit, `${appended.comparisons} comparisons for ${request.units.length} units`);
  const forked = locate(task.forest, requestOf([...START, "u:elsewhere"]), { echo: "lenient" });
  assert.ok(forked.comparisons <= 10, `${forked.comparisons} comparisons for 3 units`);
});

Deno.test("turnHistory of a long task stays as small as what each turn adds", () => {
  const task = new WrittenTask();
  const long = ["s:" + "be good ".repeat(500), "u:do it"];
  const sizes: number[] = [];
  for (let k = 0; k < 400; k++) {
    task.send(long, `say ${k}|run()#${k}`);
    sizes.push(JSON.stringify(task.forest.turn(k).history).length);
    long.push(`a:say ${k}|run()#${k}`, `t#${k}:${"result ".repeat(100)}`);
  }
  assert.ok(Math.max(...sizes) < 2000, `${Math.max(...sizes)} characters in one turn's history`);
  assert.deepEqual(task.forest.path(399), Array.from({ length: 400 }, (_, k) => k));
});

Deno.test("locate tells samples that say the same apart by their reasoning, where the echo has it", () => {
  const forest = new Forest();
  const reply = (reasoning: string) => ({ ...assistantOf("yes"), reasoning });
  for (const [turn, reasoning] of ["first thought\n", "second thought"].entries()) {
    forest.add(turn, null, turnHistory(forest, requestOf(START), reply(reasoning)));
  }
  const next = (reasoning: string | null) => {
    const messages = [...messagesOf(START), { ...assistantOf("yes", 2), reasoning }, ...messagesOf(["u:go"])];
    return place(locate(forest, requestUnits({ ...conversationOf([]), messages }), { echo: "lenient" }));
  };
  assert.deepEqual(next("first thought\n"), ["append", 0, "exact", [0, 1]]);
  assert.deepEqual(next("first thought"), ["append", 0, "exact", [0, 1]]);
  assert.deepEqual(next("second thought"), ["append", 1, "exact", [1, 1]]);
  assert.deepEqual(next("another"), ["append", 1, "exact", [1, 1]]);
  assert.deepEqual(next(null), ["append", 1, "exact", [1, 1]]);
});
