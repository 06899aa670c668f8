import assert from "node:assert/strict";
import fc from "fast-check";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import type { AssistantMessage, Message, ToolDefinition } from "../core/message.ts";
import { createRenderer } from "./create_renderer.ts";

const tokenizer = await qwen3Tokenizer();
const chatTemplate = await Deno.readTextFile(
  new URL("../../tests/fixtures/templates/qwen3_coder.jinja", import.meta.url),
);
const renderer = createRenderer({ tokenizer, chatTemplate });
const IM_END = 151645;

const TOOL: ToolDefinition = {
  name: "edit",
  raw: {
    name: "edit",
    description: "Edits.",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, all: { type: "boolean" } },
      required: ["path"],
    },
  },
};

function assistant(content: string, calls: readonly string[]): AssistantMessage {
  const toolCalls = calls.map((given, index) => ({ id: `call_${index}`, name: "edit", arguments: given }));
  return { role: "assistant", content, reasoning: null, toolCalls, form: "", source: 0 };
}

async function promptText(messages: readonly Message[]): Promise<string> {
  return tokenizer.decode((await renderer.renderPrompt({ messages, tools: [TOOL], settings: {} })).ids);
}

Deno.test("createRenderer finds Qwen3-Coder's family and parser", () => {
  assert.equal(renderer.family, "qwen3_coder");
  assert.equal(renderer.toolCallParser, "qwen3_coder");
  assert.equal(renderer.reasoningParser, null);
  assert.deepEqual(renderer.stopTokenIds, [IM_END]);
});

Deno.test("arguments are written as Python writes them", async () => {
  const given = '{"path": "a\\nb", "all": true, "none": null, "ratio": 1.0, "list": [1, "x"], "map": {"k": false}}';
  const text = await promptText([
    { role: "user", content: "Go", source: 0 },
    assistant("", [given]),
    { role: "tool", toolCallId: "call_0", content: "done", source: 0 },
  ]);
  assert.ok(text.endsWith(
    "<|im_start|>assistant\n<tool_call>\n<function=edit>\n<parameter=path>\na\nb\n</parameter>\n" +
      "<parameter=all>\nTrue\n</parameter>\n<parameter=none>\nNone\n</parameter>\n<parameter=ratio>\n1.0\n</parameter>\n" +
      '<parameter=list>\n[1, "x"]\n</parameter>\n<parameter=map>\n{"k": false}\n</parameter>\n</function>\n</tool_call>' +
      "<|im_end|>\n<|im_start|>user\n<tool_response>\ndone\n</tool_response>\n<|im_end|>\n<|im_start|>assistant\n",
  ));
});

Deno.test("arguments that are no object are refused where the template can't write them", async () => {
  const messages: Message[] = [{ role: "user", content: "Go", source: 0 }, assistant("", ['{"path": "a'])];
  await assert.rejects(promptText(messages), { code: "invalid_request" });
});

Deno.test("series and increment equal the one-shot rendering", async () => {
  const text = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 10 }),
    fc.constantFrom("", " x\n", "</parameter>", "{}"),
  );
  const turn = fc.record({ content: text, values: fc.array(text, { maxLength: 3 }), question: fc.option(text) });
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 4 }), async (turns) => {
      const messages: Message[] = [{ role: "user", content: "Begin.", source: 0 }];
      let series = (await renderer.renderPrompt({ messages, tools: [TOOL], settings: {} })).ids;
      for (const { content, values, question } of turns) {
        const reply = assistant(content, values.map((value) => JSON.stringify({ path: value, all: false })));
        // What the model would sample is what the template writes between the generation prompt and the closer.
        const before = await promptText(messages);
        messages.push(reply);
        const whole = await renderer.renderPrompt(
          { messages, tools: [TOOL], settings: {} },
          { addGenerationPrompt: false },
        );
        const completion = tokenizer.decode(whole.ids).slice(before.length).replace(/<\|im_end\|>\n$/, "");
        // An empty reply after a generation prompt that ends in a newline has no text of its own.
        series = Uint32Array.of(...series, ...tokenizer.encode(completion), IM_END);
        const appended: Message[] = reply.toolCalls.map(({ id }) => ({
          role: "tool",
          toolCallId: id,
          content,
          source: 0,
        }));
        if (question !== null || appended.length === 0) {
          appended.push({ role: "user", content: question ?? "On.", source: 0 });
        }
        const { ids } = await renderer.renderIncrement({ appended, tools: [TOOL], settings: {}, lastToken: IM_END });
        series = Uint32Array.of(...series, ...ids);
        messages.push(...appended);
        assert.equal(tokenizer.decode(series), await promptText(messages));
      }
    }),
    { numRuns: 60 },
  );
});
