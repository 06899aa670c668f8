import assert from "node:assert/strict";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { AssistantMessage, Message } from "../../shared/core/message.ts";
import { anthropicServedForm, readAnthropicConversation } from "./anthropic_messages.ts";
import { spelledArguments } from "./spelled_arguments.ts";

function read(...messages: unknown[]): readonly Message[] {
  return readAnthropicConversation({ messages }).conversation.messages;
}

function assistant(content: unknown): AssistantMessage {
  const [one] = read({ role: "assistant", content });
  assert.ok(one?.role === "assistant");
  return one;
}

Deno.test("readAnthropicConversation puts system text first, without the nonce block", () => {
  const system = [
    { type: "text", text: "x-anthropic-billing-header: nonce=1" },
    { type: "text", text: "be good", cache_control: {} },
  ];
  const { messages } = readAnthropicConversation({ system, messages: [{ role: "user", content: "do" }] }).conversation;
  assert.deepEqual(messages, [
    { role: "system", content: [{ type: "text", text: "be good" }], source: -1 },
    { role: "user", content: "do", source: 0 },
  ]);
  assert.equal(readAnthropicConversation({ system: system.slice(0, 1), messages: [] }).conversation.messages.length, 0);
});

Deno.test("readAnthropicConversation makes messages of tool results; the rest of the user message follows", () => {
  assert.deepEqual(
    read({
      role: "user",
      content: [
        { type: "text", text: "and" },
        { type: "tool_result", tool_use_id: "1", content: "done", is_error: false },
        { type: "tool_result", tool_use_id: "2", content: [{ type: "text", text: "done" }] },
      ],
    }),
    [
      { role: "tool", toolCallId: "1", content: "done", source: 0 },
      { role: "tool", toolCallId: "2", content: [{ type: "text", text: "done" }], source: 0 },
      { role: "user", content: [{ type: "text", text: "and" }], source: 0 },
    ],
  );
  assert.equal(read({ role: "user", content: [{ type: "tool_result", tool_use_id: "1" }] }).length, 1);
  assert.deepEqual(read({ role: "user", content: [] }), [{ role: "user", content: [], source: 0 }]);
});

Deno.test("readAnthropicConversation reads text, thinking and calls of an assistant message", () => {
  const message = assistant([
    { type: "thinking", thinking: "think", signature: "x" },
    { type: "text", text: "say" },
    { type: "tool_use", id: "1", name: "run", input: { b: 1, a: 2 } },
  ]);
  assert.deepEqual([message.content, message.reasoning], ["say", "think"]);
  assert.deepEqual(message.toolCalls, [{ id: "1", name: "run", arguments: '{"b":1,"a":2}' }]);
});

Deno.test("anthropicServedForm counts blocks, key order and number literals, and no white space or escapes", () => {
  const served = (text: string) =>
    anthropicServedForm({ content: "say", toolCalls: [{ id: "1", name: "run", arguments: text }] });
  const written = (input: unknown) =>
    assistant([{ type: "text", text: "say" }, { type: "tool_use", id: "2", name: "run", input }]).form;
  assert.equal(written({ b: "é", a: 1 }), served('{ "b": "\\u00e9",  "a": 1 }'));
  assert.notEqual(written({ a: 1, b: "é" }), served('{"b":"é","a":1}'));
  assert.notEqual(written({ a: 60 }), served('{"a":60.0}'));
  assert.notEqual(written({ a: 2 }), served('{"a":1,"a":2}'));
  assert.equal(written({}), served(""));
  assert.notEqual(assistant("say").form, anthropicServedForm({ content: "say", toolCalls: [] }));
});

Deno.test("spelledArguments keeps what is inside strings and what is no JSON", () => {
  assert.equal(spelledArguments('{ "a b" : "c \\" d" , "n" : 1.0 }'), '{"a b":"c \\" d","n":1.0}');
  assert.equal(spelledArguments('{"a": '), '!{"a": ');
  const long = JSON.stringify({ text: '\\" \n'.repeat(500_000) });
  assert.equal(spelledArguments(long), long);
});

Deno.test("readAnthropicConversation offers tools with a schema and names the others", () => {
  const { conversation, ignoredFields } = readAnthropicConversation({
    messages: [],
    tools: [
      { type: "web_search_20250305", name: "web_search" },
      { name: "run", description: "runs", input_schema: { type: "object" }, cache_control: {} },
    ],
  });
  assert.deepEqual(ignoredFields, ["tools.0"]);
  assert.deepEqual(conversation.tools, [{
    name: "run",
    description: "runs",
    parameters: { type: "object" },
    raw: { name: "run", description: "runs", parameters: { type: "object" } },
  }]);
});

Deno.test("readAnthropicConversation refuses what it can't read and names the field", () => {
  for (
    const [request, code, field] of [
      [{ messages: "hi" }, "invalid_request", "messages"],
      [{ messages: [{ role: "tool", content: "" }] }, "invalid_request", "messages.0.role"],
      [{ messages: [{ role: "user", content: [{ type: "document" }] }] }, "unsupported", "messages.0.content.0.type"],
      [
        { messages: [{ role: "user", content: [{ type: "text", text: 7 }] }] },
        "invalid_request",
        "messages.0.content.0.text",
      ],
      [
        { messages: [{ role: "assistant", content: [{ type: "server_tool_use" }] }] },
        "unsupported",
        "messages.0.content.0.type",
      ],
      [{ messages: [], system: 7 }, "invalid_request", "system"],
      [{ messages: [], tools: [{ input_schema: {} }] }, "invalid_request", "tools.0.name"],
    ] as const
  ) {
    assert.throws(() => readAnthropicConversation(request), (thrown) => {
      assert.ok(thrown instanceof VerbatimError);
      assert.deepEqual([thrown.code, thrown.details?.field], [code, field]);
      return true;
    });
  }
});
