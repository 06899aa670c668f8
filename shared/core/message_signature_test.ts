import assert from "node:assert/strict";
import { assistantOf, messagesOf } from "../../tests/fixtures/conversations.ts";
import type { Content, Message } from "./message.ts";
import { unitsOf } from "./message_signature.ts";

function hashes(messages: readonly Message[]): string[] {
  return unitsOf(messages).map((unit) => unit.hash);
}

function written(...words: string[]): string[] {
  return hashes(messagesOf(words));
}

function user(content: Content): Message {
  return { role: "user", content, source: 0 };
}

Deno.test("unitsOf takes the text of a message for the text of its parts", () => {
  const whole = hashes([user("one two")]);
  assert.deepEqual(hashes([user([{ type: "text", text: "one " }, { type: "text", text: "two" }])]), whole);
  assert.deepEqual(hashes([user([])]), hashes([user("")]));
  assert.notDeepEqual(hashes([user("one two ")]), whole, "user text is not trimmed");
});

Deno.test("unitsOf tells roles, texts and images apart", () => {
  assert.notDeepEqual(written("u:x"), written("s:x"));
  assert.notDeepEqual(written("u:x"), written("a:x"));
  const image = (sha256: string): Content => [{ type: "text", text: "see" }, { type: "image", sha256, url: "u" }];
  assert.notDeepEqual(hashes([user(image("1"))]), hashes([user(image("2"))]));
  assert.notDeepEqual(hashes([user(image("1"))]), hashes([user("see")]));
  assert.deepEqual(
    hashes([user(image("1"))]),
    hashes([user([{ type: "text", text: "see" }, { type: "image", sha256: "1", url: "elsewhere" }])]),
  );
});

Deno.test("unitsOf makes one unit of assistant messages in a row, trimmed as a whole", () => {
  assert.deepEqual(written("a:\n one", "a:two|f()#1"), written("a:onetwo |f({})#2"));
  assert.notDeepEqual(written("a:one ", "a:two"), written("a:onetwo"));
  const unit = unitsOf(messagesOf(["a:one", "a:two|f()#1"]))[0]!;
  assert.equal(unit.kind === "assistant" && unit.messages.length, 2);
  assert.equal(unit.end, 2);
});

Deno.test("unitsOf leaves reasoning, call ids and the spelling of arguments out of an assistant unit", () => {
  const plain = hashes([assistantOf('say|f({"a":1})#1')]);
  assert.deepEqual(hashes([{ ...assistantOf('say|f({ "a" : 1.0 })#2'), reasoning: "because", form: "other" }]), plain);
  assert.notDeepEqual(hashes([assistantOf('say|f({"a":2})#1')]), plain);
  assert.notDeepEqual(hashes([assistantOf('say|g({"a":1})#1')]), plain);
  assert.notDeepEqual(hashes([assistantOf("say|f()#1|g()#2")]), hashes([assistantOf("say|g()#2|f()#1")]));
});

Deno.test("unitsOf knows tool results by the call they answer, in any order within a block", () => {
  const calls = "a:|f()#1|g()#2";
  const inOrder = written(calls, "t#1:one", "t#2:two");
  assert.deepEqual(written(calls, "t#2:two", "t#1:one"), inOrder);
  assert.deepEqual(written("a:|f()#x|g()#y", "t#y:two", "t#x:one"), inOrder, "ids may be rewritten");
  assert.notDeepEqual(written(calls, "t#1:two", "t#2:one"), inOrder, "results swapped");
  assert.deepEqual(unitsOf(messagesOf([calls, "t#2:two", "t#1:one"])).map((unit) => unit.message), [0, 2, 1]);
});

Deno.test("unitsOf gives results that share an id to the calls of that id in turn", () => {
  const shared = written("a:|f()#|g()#", "t#:one", "t#:two");
  assert.deepEqual(shared, written("a:|f()#1|g()#2", "t#1:one", "t#2:two"));
  assert.notDeepEqual(shared, written("a:|f()#|g()#", "t#:two", "t#:one"));
  // An id used again belongs to the later call.
  assert.deepEqual(
    written("a:|f()#1", "t#1:one", "a:|f()#1", "t#1:two").at(-1),
    written("a:|f()#1", "t#1:one", "a:|f()#2", "t#2:two").at(-1),
  );
});

Deno.test("unitsOf knows a result without a call by its id", () => {
  assert.deepEqual(written("t#a:x", "t#b:y"), written("t#b:y", "t#a:x"));
  assert.notDeepEqual(written("t#a:x"), written("t#b:x"));
});

Deno.test("unitsOf keeps system messages where they stand and says where every unit stands", () => {
  const units = unitsOf([
    { role: "system", content: "be good", source: -1 },
    ...messagesOf(["u:do", "s:note", "a:one", "a:two", "u:go"]),
  ]);
  assert.deepEqual(units.map(({ kind, message, end }) => [kind, message, end]), [
    ["system", -1, 1],
    ["user", 0, 2],
    ["system", 1, 3],
    ["assistant", 2, 5],
    ["user", 4, 6],
  ]);
});

Deno.test("unitsOf takes a block of results of any length", () => {
  const count = 200_000;
  const result: Message = { role: "tool", toolCallId: "", content: "", source: 0 };
  const units = unitsOf(Array.from({ length: count }, () => result));
  assert.deepEqual([units.length, units.at(-1)?.end], [count, count]);
});
