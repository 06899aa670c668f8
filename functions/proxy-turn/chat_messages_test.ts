import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { AssistantMessage, Message } from "../../shared/core/message.ts";
import { chatServedForm, readChatConversation } from "./chat_messages.ts";

function read(...messages: unknown[]): readonly Message[] {
  return readChatConversation({ messages }).messages;
}

function assistant(message: Record<string, unknown>): AssistantMessage {
  const [one] = read({ role: "assistant", ...message });
  assert.ok(one?.role === "assistant");
  return one;
}

function refuses(request: { messages?: unknown; tools?: unknown }, code: string, field: string): void {
  assert.throws(() => readChatConversation({ messages: [], ...request }), (thrown) => {
    assert.ok(thrown instanceof VerbatimError);
    assert.deepEqual([thrown.code, thrown.details?.field], [code, field]);
    assert.equal(typeof thrown.details?.reason, "string");
    return true;
  });
}

Deno.test("readChatConversation reads roles and the places of messages", () => {
  assert.deepEqual(
    read(
      { role: "developer", content: "be good" },
      {
        role: "user",
        content: [{ type: "text", text: "do", cache_control: {} }, { type: "text", text: " it" }],
        name: "me",
      },
      { role: "tool", tool_call_id: "1", content: null, name: "run" },
    ),
    [
      { role: "system", content: "be good", source: 0 },
      { role: "user", content: [{ type: "text", text: "do" }, { type: "text", text: " it" }], source: 1 },
      { role: "tool", toolCallId: "1", content: "", source: 2 },
    ],
  );
});

Deno.test("readChatConversation reads calls, reasoning and text of an assistant message", () => {
  const message = assistant({
    content: null,
    reasoning_content: "think",
    refusal: null,
    function_call: null,
    tool_calls: [
      { id: "1", type: "function", index: 0, function: { name: "run", arguments: '{"a": 1}' } },
      { function: { name: "look", arguments: { b: 2 } } },
    ],
  });
  assert.equal(message.content, "");
  assert.equal(message.reasoning, "think");
  assert.deepEqual(message.toolCalls, [
    { id: "1", name: "run", arguments: '{"a": 1}' },
    { id: "", name: "look", arguments: '{"b":2}' },
  ]);
  assert.deepEqual(assistant({ function_call: { name: "run", arguments: "" } }).toolCalls, [{
    id: "",
    name: "run",
    arguments: "",
  }]);
});

Deno.test("readChatConversation counts a text part with its text only, whatever else it carries", () => {
  const message = assistant({ content: [{ type: "text", text: "say", reasoning_content: "think", tool_calls: [{}] }] });
  assert.deepEqual([message.content, message.reasoning, message.reasoningPlace], ["say", null, "nested"]);
});

Deno.test("readChatConversation knows an image by its bytes, or by its URL where they are elsewhere", () => {
  const sha256 = (bytes: string) => createHash("sha256").update(bytes).digest("hex");
  const image = (url: string) => {
    const content = read({ role: "user", content: [{ type: "image_url", image_url: { url } }] })[0]!.content;
    const part = typeof content === "string" ? undefined : content[0];
    return part?.type === "image" ? part.sha256 : null;
  };
  assert.equal(image(`data:image/png;base64,${btoa("pixels")}`), sha256("pixels"));
  assert.equal(image("https://example.com/a.png"), sha256("https://example.com/a.png"));
});

Deno.test("chatServedForm equals the form of a message written as served, call ids aside", () => {
  const calls = [{ id: "1", name: "run", arguments: '{"a": 1}' }];
  const written = (id: string, text: string) => ({ id, type: "function", function: { name: "run", arguments: text } });
  const form = chatServedForm({ content: "", toolCalls: calls });
  assert.equal(assistant({ content: null, tool_calls: [written("2", '{"a": 1}')] }).form, form);
  assert.notEqual(assistant({ content: "", tool_calls: [written("1", '{"a": 1}')] }).form, form);
  assert.notEqual(assistant({ tool_calls: [written("1", '{"a": 1}')] }).form, form);
  assert.notEqual(assistant({ content: null, tool_calls: [written("1", '{"a":1}')] }).form, form);
  const said = chatServedForm({ content: "say", toolCalls: [] });
  assert.equal(assistant({ content: "say", reasoning_content: "x" }).form, said);
  assert.notEqual(assistant({ content: [{ type: "text", text: "say" }] }).form, said);
});

Deno.test("readChatConversation reads tools without their cache markers", () => {
  const { tools } = readChatConversation({
    messages: [],
    tools: [
      {
        type: "function",
        function: { description: "runs", name: "run", parameters: { type: "object" }, strict: true },
      },
      { type: "function", name: "look", cache_control: {} },
    ],
  });
  assert.deepEqual(tools, [
    {
      name: "run",
      description: "runs",
      parameters: { type: "object" },
      raw: { description: "runs", name: "run", parameters: { type: "object" }, strict: true },
    },
    { name: "look", raw: { name: "look" } },
  ]);
});

Deno.test("readChatConversation refuses what it can't read and names the field", () => {
  refuses({ messages: {} }, "invalid_request", "messages");
  refuses({ messages: ["hi"] }, "invalid_request", "messages.0");
  refuses({ messages: [{ role: "robot" }] }, "invalid_request", "messages.0.role");
  refuses({ messages: [{ role: "user", content: 7 }] }, "invalid_request", "messages.0.content");
  refuses(
    { messages: [{ role: "user", content: [{ type: "input_audio" }] }] },
    "unsupported",
    "messages.0.content.0.type",
  );
  refuses(
    { messages: [{ role: "assistant", tool_calls: [{ function: {} }] }] },
    "invalid_request",
    "messages.0.tool_calls.0.function.name",
  );
  refuses(
    { messages: [{ role: "assistant", tool_calls: [{ type: "custom" }] }] },
    "unsupported",
    "messages.0.tool_calls.0.type",
  );
  const deep: unknown = JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
  refuses(
    { tools: [{ type: "function", function: { name: "run", parameters: deep } }] },
    "invalid_request",
    "tools.0.function",
  );
  refuses(
    { messages: [{ role: "assistant", tool_calls: [{ function: { name: "run", arguments: deep } }] }] },
    "invalid_request",
    "messages.0.tool_calls.0.function.arguments",
  );
  refuses({ tools: [{ type: "web_search" }] }, "unsupported", "tools.0.type");
  refuses({ tools: [{ type: "function", function: {} }] }, "invalid_request", "tools.0.function.name");
});
