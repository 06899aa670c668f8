import assert from "node:assert/strict";
import fc from "fast-check";
import { assistantOf, conversationOf, messagesOf, requestOf } from "../../tests/fixtures/conversations.ts";
import type { Message } from "./message.ts";
import { unitsOf } from "./message_signature.ts";
import { requestUnits } from "./request_units.ts";
import { sameMessage, sharedMessages } from "./same_message.ts";

/** Few different words, so that conversations often begin alike and results often name calls there are. */
const word = fc.constantFrom("s:x", "u:x", "u:y", "a:x", "a:x|f()#1", "a:|f()#1|g()#2", "t#1:x", "t#2:x", "t#1:y");
const words = fc.array(word, { maxLength: 8 });

const MESSAGES: readonly Message[] = [
  ...messagesOf(["s:x", "u:x", "u:y", "a:x", "t#1:x", "t#2:x"]).map((message) => ({ ...message, source: 0 })),
  { role: "user", content: "x", source: 1 },
  { role: "user", content: [], source: 0 },
  { role: "user", content: [{ type: "text", text: "x" }], source: 0 },
  { role: "user", content: [{ type: "text", text: "x" }, { type: "text", text: "x" }], source: 0 },
  { role: "user", content: [{ type: "image", sha256: "x", url: "x" }], source: 0 },
  { role: "user", content: [{ type: "image", sha256: "y", url: "x" }], source: 0 },
  { role: "user", content: [{ type: "image", sha256: "x", url: "y" }], source: 0 },
  ...["x|f()#1", "x|f()#2", "x|g()#1", 'x|f({"a":1})#1', "x|f()#1|f()#1"].map((reply) => assistantOf(reply, 0)),
  { ...assistantOf("x", 0), form: "other" },
  { ...assistantOf("x", 0), reasoning: "because" },
  { ...assistantOf("x", 0), reasoning: "because", reasoningPlace: "nested" },
];

Deno.test("sameMessage tells any two messages apart that differ in anything, and knows a copy again", () => {
  for (const [k, left] of MESSAGES.entries()) {
    for (const [other, right] of MESSAGES.entries()) {
      const what = `${JSON.stringify(left)} and ${JSON.stringify(right)}`;
      assert.equal(sameMessage(left, structuredClone(right)), k === other, what);
    }
  }
});

Deno.test("sharedMessages counts what two conversations begin with", () => {
  const messages = messagesOf(["u:x", "a:x", "u:y"]);
  assert.equal(sharedMessages(messages, messagesOf(["u:x", "a:x", "u:x"])), 2);
  assert.equal(sharedMessages(messages, messagesOf(["u:x", "a:x"])), 2);
  assert.equal(sharedMessages(messages, []), 0);
});

Deno.test("unitsOf gives the same units whatever conversation is known, and its own objects where it begins alike", () => {
  fc.assert(fc.property(words, words, words, (start, ending, other) => {
    const before = messagesOf([...start, ...other]);
    const known = { messages: before, units: unitsOf(before) };
    const messages = messagesOf([...start, ...ending]);
    assert.deepEqual(unitsOf(messages, known), unitsOf(messages));
    assert.ok(unitsOf(structuredClone(before), known).every((unit, k) => unit === known.units[k]));
  }));
});

Deno.test("requestUnits keeps the messages of a known request where the new one repeats them", () => {
  const known = requestOf(["s:x", "u:x"]);
  const conversation = conversationOf(["s:x", "u:x", "a:x", "u:y"]);
  const request = requestUnits(conversation, { known });
  assert.deepEqual(request, requestUnits(conversation));
  assert.deepEqual(request.messages.map((message, k) => message === known.messages[k]), [true, true, false, false]);
});
