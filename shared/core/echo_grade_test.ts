import assert from "node:assert/strict";
import { assistantOf, requestOf } from "../../tests/fixtures/conversations.ts";
import { gradeEcho, isAccepted, reasoningFate } from "./echo_grade.ts";
import { Forest } from "./forest.ts";
import type { AssistantMessage } from "./message.ts";
import { assistantUnit } from "./message_signature.ts";
import { turnHistory } from "./record_history.ts";

/** The grades of an echo, first to last. `prompt` is what the prompt ended in. */
function grade(reply: string, echo: string | readonly string[], prompt: readonly string[] = ["u:do"]): string[] {
  const history = turnHistory(new Forest(), requestOf(prompt), assistantOf(reply));
  const unit = assistantUnit([echo].flat().map((word) => assistantOf(word)), 0);
  const { echo: first, also } = gradeEcho(history.reply, unit, history.open);
  return [first, ...also];
}

Deno.test("gradeEcho tells how alike an echo is written", () => {
  assert.deepEqual(grade('say|f({"a":1})#1', 'say|f({"a":1})#1'), ["exact"]);
  assert.deepEqual(grade('say|f({"a":1})#1', 'say|f({"a": 1.0})#1'), ["representation"]);
  assert.deepEqual(grade("\n say \n", "say"), ["representation"]);
  assert.deepEqual(grade("say|f()#1", ["say", "|f()#1"]), ["representation"], "in two messages");
});

Deno.test("gradeEcho names calls, arguments, text and ids that changed, in this order", () => {
  assert.deepEqual(grade("say|f()#1", "say|f()#2"), ["ids_rewritten"]);
  assert.deepEqual(grade("say|f()#1", "|f()#1"), ["text_dropped"]);
  assert.deepEqual(grade("say|f()#1", "say more|f()#1"), ["text_changed"]);
  assert.deepEqual(grade("say|f()#1", "say|g()#1"), ["args_rewritten"]);
  assert.deepEqual(grade('say|f({"a)#1', "say|f({})#1"), ["args_rewritten"]);
  assert.deepEqual(grade("say|f()#1|g()#2", "say|g()#2"), ["calls_dropped"]);
  assert.deepEqual(grade("say|f()#1", "say"), ["calls_dropped"]);
  assert.deepEqual(grade("say|f()#1|g()#2|h()#3", "|f(1)#9"), [
    "calls_dropped",
    "args_rewritten",
    "text_dropped",
    "ids_rewritten",
  ]);
  assert.deepEqual(grade("say", "say|f()#1"), ["args_rewritten"], "a call that was not served");
  assert.deepEqual(
    grade("say|f()#1|g()#2", "say|g()#2|f()#1"),
    ["args_rewritten", "ids_rewritten"],
    "calls in another order",
  );
});

Deno.test("gradeEcho finds the call that was kept by its id among equal calls", () => {
  assert.deepEqual(grade("|f()#1|f()#2", "|f()#2"), ["calls_dropped"]);
  assert.deepEqual(grade("|f()#1|f()#2", "|f()#3"), ["calls_dropped", "ids_rewritten"]);
});

Deno.test("gradeEcho grades a reply that continues the prompt's last turn by what it added", () => {
  const prompt = ["u:do", "a:It is|f()#0"];
  assert.deepEqual(grade(" so|g()#1", ["It is|f()#0", " so|g()#1"], prompt), ["exact"]);
  assert.deepEqual(grade(" so|g()#1", "It is so|f()#0|g()#1", prompt), ["representation"]);
  assert.deepEqual(grade(" so|g()#1", ["It is|f()#x", "|g()#1"], prompt), ["text_dropped"]);
  assert.deepEqual(grade(" so|g()#1", ["It is|f()#x", " so"], prompt), ["calls_dropped"]);
});

Deno.test("isAccepted takes anything but nothing for an echo, and under strict only the same turn", () => {
  assert.deepEqual(
    ([
      "exact",
      "representation",
      "ids_rewritten",
      "args_rewritten",
      "text_dropped",
      "calls_dropped",
      "text_changed",
      "missing",
    ] as const)
      .map((echo) => [isAccepted(echo, "lenient"), isAccepted(echo, "strict")]),
    [[true, true], [true, true], [true, true], [true, false], [true, false], [true, false], [true, false], [
      false,
      false,
    ]],
  );
});

Deno.test("reasoningFate says what became of the reasoning, outside the grade", () => {
  const reply: AssistantMessage = { ...assistantOf("say"), reasoning: "I think\n" };
  const { reply: stored } = turnHistory(new Forest(), requestOf(["u:do"]), reply);
  const fate = (echo: Partial<AssistantMessage>) =>
    reasoningFate(stored, assistantUnit([{ ...reply, ...echo }], 0), null);
  assert.equal(fate({}), "kept");
  assert.equal(fate({ reasoning: "I think" }), "trimmed");
  assert.equal(fate({ reasoning: null }), "dropped");
  assert.equal(fate({ reasoning: "" }), "dropped");
  assert.equal(fate({ reasoning: "I thought" }), "changed");
  assert.equal(fate({ reasoning: null, reasoningPlace: "nested" }), "nested");
  const silent = turnHistory(new Forest(), requestOf(["u:do"]), assistantOf("say"));
  assert.equal(reasoningFate(silent.reply, assistantUnit([reply], 0), null), null);
});
