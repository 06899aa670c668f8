import assert from "node:assert/strict";
import { createRenderer } from "../../shared/rendering/create_renderer.ts";
import type { Renderer } from "../../shared/ports/renderer.ts";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { answerGrammar, callGrammar } from "./call_grammar.ts";

const tokenizer = await qwen3Tokenizer();

function rendererOf(toolCallParser: string | null, reasoningParser: string | null = "qwen3"): Renderer {
  return createRenderer({ tokenizer, toolCallParser, reasoningParser });
}

const tools = [
  { name: "look", parameters: { type: "object", properties: { at: { type: "string" } } }, raw: {} },
  { name: 'odd "name"', raw: {} },
];

function tagOf(grammar: ReturnType<typeof callGrammar>): Record<string, unknown> {
  assert.ok(grammar !== null && "structural_tag" in grammar);
  const { type, format } = JSON.parse(grammar.structural_tag);
  assert.equal(type, "structural_tag");
  return format;
}

const LIST = {
  type: "tags_with_separator",
  tags: [
    {
      type: "tag",
      begin: '<tool_call>\n{"name": "look", "arguments": ',
      content: { type: "json_schema", json_schema: tools[0]!.parameters },
      end: "}\n</tool_call>",
    },
    {
      type: "tag",
      begin: '<tool_call>\n{"name": "odd \\"name\\"", "arguments": ',
      content: { type: "json_schema", json_schema: { type: "object" } },
      end: "}\n</tool_call>",
    },
  ],
  separator: "\n",
  at_least_one: true,
};

Deno.test("callGrammar writes calls as the model's own markup around its tools' schemas", () => {
  for (const parser of ["qwen", "qwen25", "hermes"]) {
    const grammar = callGrammar({ tools, parallel: true, opensReasoning: false }, rendererOf(parser));
    assert.deepEqual(tagOf(grammar), { ...LIST, stop_after_first: false });
  }
  const one = callGrammar({ tools, parallel: false, opensReasoning: false }, rendererOf("qwen25"));
  assert.equal(tagOf(one).stop_after_first, true);
});

Deno.test("callGrammar lets reasoning end that the prompt opened", () => {
  const { type, elements } = tagOf(
    callGrammar({ tools, parallel: true, opensReasoning: true }, rendererOf("qwen25")),
  );
  assert.equal(type, "sequence");
  assert.deepEqual(elements, [
    { type: "tag", begin: "", content: { type: "any_text" }, end: "</think>" },
    { type: "or", elements: ["\n\n", "\n", ""].map((value) => ({ type: "const_string", value })) },
    { ...LIST, stop_after_first: false },
  ]);
});

Deno.test("callGrammar is null where calls or reasoning are of another form", () => {
  for (const parser of ["glm45", "qwen3_coder", "mistral", null]) {
    assert.equal(callGrammar({ tools, parallel: true, opensReasoning: false }, rendererOf(parser)), null);
  }
  const renderer = rendererOf("qwen25", "mistral");
  assert.equal(callGrammar({ tools, parallel: true, opensReasoning: true }, renderer), null);
});

Deno.test("answerGrammar is the schema alone, or an alternative of schema and calls", () => {
  const schema = { type: "object" };
  const renderer = rendererOf("qwen25");
  assert.deepEqual(answerGrammar({ schema, calls: null, opensReasoning: false }, renderer), {
    json_schema: '{"type":"object"}',
  });
  assert.deepEqual(
    tagOf(answerGrammar({ schema, calls: { tools, parallel: true }, opensReasoning: false }, renderer)),
    {
      type: "or",
      elements: [{ type: "json_schema", json_schema: schema }, { ...LIST, stop_after_first: false }],
    },
  );
  assert.equal(tagOf(answerGrammar({ schema, calls: null, opensReasoning: true }, renderer)).type, "sequence");
});
