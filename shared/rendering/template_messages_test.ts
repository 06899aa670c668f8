import assert from "node:assert/strict";
import type { AssistantMessage, Message } from "../core/message.ts";
import { toTemplateMessages, toTemplateTools } from "./template_messages.ts";
import { toJson } from "./jinja/representation.ts";
import { plain } from "./jinja/text.ts";
import type { Value } from "./jinja/values.ts";

const FORM = { argumentsAs: "object", noContentAs: "empty" } as const;
const OPTIONS = { takesParts: false, callForm: FORM };

function json(value: Value): unknown {
  const style = { ensureAscii: false, indent: null, separators: [",", ":"], sortKeys: false } as const;
  return JSON.parse(plain(toJson(value, style)));
}

function assistant(toolCalls: AssistantMessage["toolCalls"], content = ""): AssistantMessage {
  return { role: "assistant", content, reasoning: null, toolCalls, form: "", source: 0 };
}

const CALL = { id: "call_1", name: "read", arguments: '{"a": 1}' };

Deno.test("toTemplateMessages gives OpenAI's form, with keys only for what there is", () => {
  const messages: Message[] = [
    { role: "system", content: "s", source: -1 },
    { role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }], source: 0 },
    { ...assistant([CALL]), reasoning: "r" },
    { role: "tool", toolCallId: "call_1", content: "t", source: 2 },
    { role: "tool", toolCallId: "call_0", content: "e", source: 3 },
    { role: "tool", toolCallId: "call_x", content: "u", source: 4 },
    assistant([], "x"),
  ];
  assert.deepEqual(json(toTemplateMessages(messages, { ...OPTIONS, earlierCalls: [{ id: "call_0", name: "old" }] })), [
    { role: "system", content: "s" },
    { role: "user", content: "ab" },
    {
      role: "assistant",
      content: "",
      reasoning_content: "r",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: { a: 1 } } }],
    },
    { role: "tool", content: "t", tool_call_id: "call_1", name: "read" },
    { role: "tool", content: "e", tool_call_id: "call_0", name: "old" },
    { role: "tool", content: "u", tool_call_id: "call_x" },
    { role: "assistant", content: "x" },
  ]);
});

Deno.test("toTemplateMessages gives arguments that are no object as the text they are", () => {
  for (const given of ["", "{", "[1]", '"x"', "null", "3"]) {
    const [message] = toTemplateMessages([assistant([{ ...CALL, arguments: given }])], OPTIONS);
    assert.ok(message !== undefined);
    const calls = { tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: given } }] };
    assert.deepEqual(json(message), { role: "assistant", content: "", ...calls });
  }
});

Deno.test("toTemplateMessages follows the form in which the template writes calls", () => {
  const messages = toTemplateMessages([assistant([CALL]), assistant([CALL], "x"), assistant([])], {
    takesParts: false,
    callForm: { argumentsAs: "text", noContentAs: "none" },
  });
  const calls = [{ id: "call_1", type: "function", function: { name: "read", arguments: '{"a": 1}' } }];
  assert.deepEqual(json(messages), [
    { role: "assistant", content: null, tool_calls: calls },
    { role: "assistant", content: "x", tool_calls: calls },
    { role: "assistant", content: "" },
  ]);
});

Deno.test("toTemplateMessages keeps parts where the template reads them, and refuses images", () => {
  const content = [{ type: "text", text: "a" }, { type: "text", text: "b" }] as const;
  assert.deepEqual(json(toTemplateMessages([{ role: "user", content, source: 0 }], { ...OPTIONS, takesParts: true })), [
    { role: "user", content },
  ]);
  const image: Message = { role: "user", content: [{ type: "image", sha256: "0", url: "data:," }], source: 4 };
  assert.throws(() => toTemplateMessages([image], OPTIONS), { code: "unsupported", message: /Message 4/ });
});

Deno.test("toTemplateTools gives definitions in the order they were written", () => {
  assert.equal(toTemplateTools([]), null);
  const raw = { strict: true, name: "read", description: "d" };
  const written = json(
    toTemplateTools([{ name: "read", raw }, { name: "bare", description: "x", raw: { strict: false } }]),
  );
  assert.equal(
    JSON.stringify(written),
    '[{"type":"function","function":{"strict":true,"name":"read","description":"d"}},' +
      '{"type":"function","function":{"name":"bare","description":"x","strict":false}}]',
  );
});
