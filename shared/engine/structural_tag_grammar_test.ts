/** What a structural tag lets through follows it, and what can't be kept is refused. */

import assert from "node:assert/strict";
import { generate } from "../../tests/fixtures/engine_client.ts";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { createEmbeddedEngine } from "./embedded_engine.ts";
import { UnsupportedSchema } from "./json_schema_grammar.ts";
import { structuralTagGrammar } from "./structural_tag_grammar.ts";

const tokenizer = await qwen3Tokenizer();
const SCHEMA = { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } };

function tagOf(name: string): Record<string, unknown> {
  return {
    type: "tag",
    begin: `<call>${name} `,
    content: { type: "json_schema", json_schema: SCHEMA },
    end: "</call>",
  };
}

/** Replies under a format, sampled at temperature 1. */
async function replies(format: unknown, count: number): Promise<string[]> {
  const engine = createEmbeddedEngine({ tokenizer, modelName: "m", maxContextTokens: 4096 });
  const texts: string[] = [];
  for (let k = 0; k < count; k++) {
    const reply = await generate(engine, {
      text: `say something ${k}`,
      sampling_params: {
        max_new_tokens: 2000,
        temperature: 1,
        structural_tag: JSON.stringify({ type: "structural_tag", format }),
      },
    });
    assert.equal(reply.meta_info.finish_reason?.type, "stop");
    texts.push(reply.text);
  }
  return texts;
}

const CALL = String.raw`<call>(?:look|run) \{"city": "[^"]*", "days": -?\d+\}</call>`;

Deno.test("structural_tag output is a list of tags, one at least, joined by the separator", async () => {
  const format = {
    type: "tags_with_separator",
    tags: [tagOf("look"), tagOf("run")],
    separator: "\n",
    at_least_one: true,
  };
  for (const text of await replies(format, 20)) assert.match(text, new RegExp(`^${CALL}(?:\n${CALL})*$`));
  for (const text of await replies({ ...format, stop_after_first: true }, 20)) {
    assert.match(text, new RegExp(`^${CALL}$`));
  }
});

Deno.test("structural_tag output follows sequences, alternatives and free text", async () => {
  const reasoning = { type: "tag", begin: "", content: { type: "any_text" }, end: "</think>" };
  const space = { type: "or", elements: ["\n\n", ""].map((value) => ({ type: "const_string", value })) };
  const texts = await replies({ type: "sequence", elements: [reasoning, space, tagOf("run")] }, 20);
  for (const text of texts) assert.match(text, new RegExp(`^[A-Za-z0-9 ,.;:!?()-]*</think>(?:\n\n)?${CALL}$`));
});

Deno.test("structuralTagGrammar refuses what it can't keep", () => {
  for (
    const tag of [
      "{",
      '"text"',
      '{"type": "other"}',
      '{"type": "structural_tag"}',
      '{"type": "structural_tag", "format": {"type": "regex", "pattern": "a"}}',
      '{"type": "structural_tag", "format": {"type": "sequence", "elements": []}}',
      '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}}',
      '{"type": "structural_tag", "format": {"type": "tag", "begin": 5, "content": {"type": "any_text"}, "end": ""}}',
    ]
  ) {
    assert.throws(() => structuralTagGrammar(tag, { tokenizer, words: [] }), UnsupportedSchema, tag);
  }
});
