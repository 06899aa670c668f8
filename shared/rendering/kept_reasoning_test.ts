import assert from "node:assert/strict";
import type { Message } from "../core/message.ts";
import { byteTokenizer } from "../../tests/fixtures/byte_tokenizer.ts";
import { qwen3TokenizerFiles } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { createRenderer } from "./create_renderer.ts";

const LOOP = "{% for m in messages %}<|im_start|>{{ m.role }}\n";
const END = "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
const WRITES_ALL = `${LOOP}{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}${END}`;
const WRITES_LAST =
  `${LOOP}{% if m.reasoning_content and loop.index0 + 3 > messages|length %}<think>{{ m.reasoning_content }}</think>{% endif %}${END}`;

async function keeps(messages: readonly Message[], assistants: readonly number[], template?: string): Promise<boolean> {
  const chatTemplate = template ?? Object((await qwen3TokenizerFiles()).tokenizerConfig).chat_template;
  const renderer = createRenderer({ tokenizer: byteTokenizer(), chatTemplate });
  return renderer.keepsReasoning({ messages, tools: [{ name: "run", raw: {} }], settings: {} }, assistants);
}

function user(content: string): Message {
  return { role: "user", content, source: 0 };
}

function assistant(content: string, calls = 0): Message {
  const toolCalls = Array.from({ length: calls }, (_, k) => ({ id: `c${k}`, name: "run", arguments: `{"k": ${k}}` }));
  return { role: "assistant", content, reasoning: null, toolCalls, form: "", source: 0 };
}

const RESULT: Message = { role: "tool", toolCallId: "c0", content: "done", source: 0 };

Deno.test("keepsReasoning of Qwen3 holds while only results follow, and ends with the next word of the user", async () => {
  const loop = [user("Go"), assistant("", 1), RESULT, assistant("", 1), RESULT];
  assert.equal(await keeps(loop, [1, 3]), true);
  assert.equal(await keeps([...loop, assistant("Done.")], [1, 3, 5]), true);
  assert.equal(await keeps([...loop, assistant("Done."), user("More")], [1, 3, 5]), false);
  assert.equal(await keeps([...loop, user("More")], [3]), false);
  assert.equal(await keeps([...loop, user("More"), assistant("", 1), RESULT], [6]), true);
  assert.equal(await keeps([...loop, user("More"), assistant("", 1), RESULT], [1, 6]), false);
});

Deno.test("keepsReasoning of Qwen3 takes a user's message that is a tool response for one, however long", async () => {
  const response = `<tool_response>\n${"long ".repeat(1000)}\n</tool_response>`;
  assert.equal(await keeps([user("Go"), assistant("Calling."), user(response)], [1]), true);
  assert.equal(await keeps([user("Go"), assistant("Calling."), user(`${response}.`)], [1]), false);
});

Deno.test("keepsReasoning asks the template, whatever its rule", async () => {
  const talk = [user("One"), assistant("1"), user("Two"), assistant("2"), user("Three")];
  assert.equal(await keeps(talk, [1, 3], WRITES_ALL), true);
  assert.equal(await keeps(talk, [3], WRITES_LAST), true);
  assert.equal(await keeps(talk, [1, 3], WRITES_LAST), false);
  assert.equal(await keeps(talk, [3], `${LOOP}${END}`), false, "a template that writes no reasoning keeps none");
  assert.equal(await keeps(talk, [], `${LOOP}${END}`), true);
});

Deno.test("keepsReasoning tells many replies apart, and texts that look like its own do not mislead it", async () => {
  const many = Array.from({ length: 25 }, (_, k) => [user(`${k}`), assistant(`${k}`)]).flat();
  const all = many.flatMap((message, k) => message.role === "assistant" ? [k] : []);
  assert.equal(await keeps(many, all, WRITES_ALL), true);
  assert.equal(await keeps([...many, user("last")], all, WRITES_LAST), false);
  const forged = "VerbatimReasoningThatTheTemplateStillWritesQaZ";
  assert.equal(await keeps([user(forged), assistant(forged), user(forged)], [1]), false);
});
