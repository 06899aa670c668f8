import assert from "node:assert/strict";
import { type CanonicalAction, isSameAction, type ParsedMessage, readAction } from "./canonical_action.ts";

function message(changes: Partial<ParsedMessage>): ParsedMessage {
  return { reasoning: null, content: null, toolCalls: [], ...changes };
}

Deno.test("readAction() takes the first call, with what was thought and said before it", () => {
  const toolCalls = [{ name: "run", arguments: '{"a": [1]}' }, { name: "other", arguments: "{}" }];
  assert.deepEqual(readAction(message({ reasoning: " why\n", content: "\n so ", toolCalls })), {
    action: { kind: "tool_call", name: "run", arguments: { a: [1] }, reasoning: "why", text: "so" },
    droppedCalls: 1,
  });
  const [call] = toolCalls;
  assert.deepEqual(readAction(message({ reasoning: " ", content: "", toolCalls: [call!] })), {
    action: { kind: "tool_call", name: "run", arguments: { a: [1] } },
    droppedCalls: 0,
  });
});

Deno.test("readAction() knows the call that ends a task by its name", () => {
  for (const name of ["finish", "submit", "mark_task_complete"]) {
    const read = readAction(message({ toolCalls: [{ name, arguments: '{"ok": true}' }] }));
    assert.deepEqual(read, { action: { kind: "finish", name, arguments: { ok: true } }, droppedCalls: 0 });
  }
});

Deno.test("readAction() takes text where there is no call, and nothing where there is neither", () => {
  assert.deepEqual(readAction(message({ reasoning: "why", content: " hello\n" })), {
    action: { kind: "message", text: "hello", reasoning: "why" },
    droppedCalls: 0,
  });
  assert.deepEqual(readAction(message({ reasoning: "why", content: " \n" })), { action: null, reason: "empty" });
});

Deno.test("readAction() takes no call whose arguments are no object", () => {
  for (const text of ["", "{", "[]", "null", '"a"', "1"]) {
    const read = readAction(message({ toolCalls: [{ name: "run", arguments: text }] }));
    assert.deepEqual(read, { action: null, reason: "malformed" }, text);
  }
});

Deno.test("isSameAction tells decisions apart by what they do and by what they say, not by how they are written", () => {
  const call: CanonicalAction = {
    kind: "tool_call",
    name: "run",
    arguments: { a: 1, b: { c: [2] } },
    text: "I look.",
  };
  assert.ok(
    isSameAction(call, { text: "I look.", arguments: { b: { c: [2] }, a: 1 }, name: "run", kind: "tool_call" }),
  );
  assert.ok(!isSameAction(call, { ...call, arguments: { a: "1", b: { c: [2] } } }));
  assert.ok(!isSameAction(call, { ...call, text: "I look" }));
  assert.ok(!isSameAction(call, { ...call, kind: "finish" }));
  assert.ok(!isSameAction(call, { ...call, reasoning: "Hm." }));
  assert.ok(!isSameAction({ kind: "message", text: "run" }, call));
});
