import assert from "node:assert/strict";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { AssistantMessage, Message } from "../../shared/core/message.ts";
import { readResponsesConversation, responsesServedForm, type ServedItem } from "./responses_messages.ts";

const SERVED: { readonly [id: string]: ServedItem } = {
  rs_1: { type: "reasoning", text: "think" },
  msg_1: { type: "message", text: "say" },
  fc_1: { type: "function_call", call: { id: "c1", name: "run", arguments: '{"a": 1}' } },
};

function read(...input: unknown[]): readonly Message[] {
  return readResponsesConversation({ input }, (id) => SERVED[id] ?? null).conversation.messages;
}

function replies(...input: unknown[]): AssistantMessage[] {
  return read(...input).filter((message): message is AssistantMessage => message.role === "assistant");
}

const REASONING = {
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "short" }],
  content: [{ type: "reasoning_text", text: "think" }],
};
const MESSAGE = {
  type: "message",
  role: "assistant",
  id: "msg_1",
  content: [{ type: "output_text", text: "say", annotations: [] }],
};
const CALL = { type: "function_call", id: "fc_1", call_id: "c1", name: "run", arguments: '{"a": 1}' };

Deno.test("readResponsesConversation puts instructions first and reads a string for a user's word", () => {
  const { conversation } = readResponsesConversation({ input: "do it", instructions: "be good" }, () => null);
  assert.deepEqual(conversation.messages, [
    { role: "system", content: "be good", source: -1 },
    { role: "user", content: "do it", source: 0 },
  ]);
});

Deno.test("readResponsesConversation makes one message of a reply's items, placed at the first that is no reasoning", () => {
  const [reply, ...rest] = replies({ role: "user", content: "do" }, REASONING, MESSAGE, CALL, {
    ...CALL,
    call_id: "c2",
  });
  assert.deepEqual(rest, []);
  assert.deepEqual([reply!.content, reply!.reasoning, reply!.source], ["say", "think", 2]);
  assert.deepEqual(reply!.toolCalls.map((call) => call.id), ["c1", "c2"]);
});

Deno.test("readResponsesConversation starts another reply where reasoning or text comes again", () => {
  assert.deepEqual(
    replies(REASONING, MESSAGE, REASONING, MESSAGE, CALL).map((reply) => [reply.source, reply.toolCalls.length]),
    [[1, 0], [3, 1]],
  );
  assert.deepEqual(replies(MESSAGE, MESSAGE).length, 2);
  assert.deepEqual(replies(CALL, MESSAGE).length, 2);
});

Deno.test("readResponsesConversation reads results, and reasoning that nothing follows", () => {
  assert.deepEqual(
    read(CALL, { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "done" }] })[1],
    { role: "tool", toolCallId: "c1", content: [{ type: "text", text: "done" }], source: 1 },
  );
  const [cut] = replies(REASONING, { role: "user", content: "go on" });
  assert.deepEqual([cut!.content, cut!.reasoning, cut!.source], ["", "think", 0]);
});

Deno.test("readResponsesConversation puts the served item in a reference's place", () => {
  const [reply] = replies({ type: "item_reference", id: "rs_1" }, { id: "msg_1" }, {
    type: "item_reference",
    id: "fc_1",
  });
  assert.deepEqual([reply!.content, reply!.reasoning, reply!.reasoningPlace], ["say", "think", "referenced"]);
  assert.deepEqual(reply!.toolCalls.map((call) => call.arguments), ['{"a": 1}']);
  assert.notEqual(reply!.form, responsesServedForm(reply!), "written in another way");
});

Deno.test("responsesServedForm equals the form of items written as served, ids aside", () => {
  const served = { content: "say", toolCalls: [{ id: "x", name: "run", arguments: '{"a": 1}' }] };
  assert.equal(replies(REASONING, MESSAGE, CALL)[0]!.form, responsesServedForm(served));
  assert.notEqual(replies(MESSAGE, { ...CALL, arguments: '{"a":1}' })[0]!.form, responsesServedForm(served));
  assert.notEqual(replies({ role: "assistant", content: "say" }, CALL)[0]!.form, responsesServedForm(served));
});

Deno.test("readResponsesConversation offers functions only and names the other tools", () => {
  const { conversation, ignoredFields } = readResponsesConversation(
    {
      input: "do",
      tools: [{ type: "web_search" }, { type: "function", name: "run", parameters: { type: "object" }, strict: false }],
    },
    () => null,
  );
  assert.deepEqual(ignoredFields, ["tools.0"]);
  assert.deepEqual(conversation.tools, [{
    name: "run",
    parameters: { type: "object" },
    raw: { name: "run", parameters: { type: "object" }, strict: false },
  }]);
});

Deno.test("readResponsesConversation refuses what it can't read and names the field", () => {
  for (
    const [request, code, field] of [
      [{ input: 7 }, "invalid_request", "input"],
      [{ input: [7] }, "invalid_request", "input.0"],
      [{ input: [{ type: "item_reference", id: "rs_9" }] }, "invalid_request", "input.0.id"],
      [{ input: [{ type: "computer_call" }] }, "unsupported", "input.0.type"],
      [{ input: [{ role: "robot", content: "" }] }, "invalid_request", "input.0.role"],
      [{ input: [{ role: "user", content: [{ type: "input_file" }] }] }, "unsupported", "input.0.content.0.type"],
      [{ input: [{ type: "reasoning", encrypted_content: 7 }] }, "invalid_request", "input.0.encrypted_content"],
      [{ input: "do", tools: [{ type: "file_search" }] }, "unsupported", "tools.0.type"],
    ] as const
  ) {
    assert.throws(() => readResponsesConversation(request, (id) => SERVED[id] ?? null), (thrown) => {
      assert.ok(thrown instanceof VerbatimError);
      assert.deepEqual([thrown.code, thrown.details?.field], [code, field]);
      return true;
    });
  }
});
