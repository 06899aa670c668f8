import assert from "node:assert/strict";
import coderVectors from "../../tests/fixtures/vectors/templates/qwen3_coder.json" with { type: "json" };
import jinjaVectors from "../../tests/fixtures/vectors/templates/jinja.json" with { type: "json" };
import qwen3Vectors from "../../tests/fixtures/vectors/templates/qwen3.json" with { type: "json" };
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { VerbatimError } from "../core/errors.ts";
import type { Json, Message, TemplateSettings, ToolDefinition } from "../core/message.ts";
import { compileChatTemplate } from "./chat_template.ts";
import { fromJson } from "./jinja/from_json.ts";
import { plain, spansOf, type Text } from "./jinja/text.ts";
import { PromptTemplate } from "./prompt_template.ts";

interface ConversationVector {
  readonly messages: readonly object[];
  readonly tools: readonly { function: { [key: string]: Json } }[];
  readonly settings: TemplateSettings;
  readonly add_generation_prompt: boolean;
  readonly text: string;
}

function render(source: string, variables: { readonly [name: string]: Json } = {}): Text {
  const template = compileChatTemplate(source, { now: () => Date.UTC(2024, 6, 4, 5, 6) });
  return template.render(new Map(Object.entries(variables).map(([name, value]) => [name, fromJson(value)])));
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : assert.fail(`${JSON.stringify(value)} is no text`);
}

/** A message of a vector, which is in OpenAI's chat form, in canonical form. */
function message(value: Json): Message {
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value));
  const content = text(value["content"]);
  switch (value["role"]) {
    case "system":
      return { role: "system", content, source: 0 };
    case "user":
      return { role: "user", content, source: 0 };
    case "tool":
      return { role: "tool", content, toolCallId: text(value["tool_call_id"]), source: 0 };
    default: {
      const reasoning = value["reasoning_content"] === undefined ? null : text(value["reasoning_content"]);
      const calls = Array.isArray(value["tool_calls"]) ? value["tool_calls"] : [];
      return { role: "assistant", content, reasoning, toolCalls: calls.map(call), form: "", source: 0 };
    }
  }
}

function call(value: Json): { id: string; name: string; arguments: string } {
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value));
  const called = value["function"];
  assert.ok(typeof called === "object" && called !== null && !Array.isArray(called));
  return { id: text(value["id"]), name: text(called["name"]), arguments: text(called["arguments"]) };
}

/** Vectors are typed by their JSON, one shape an entry. */
function conversationVectors(vectors: unknown): readonly ConversationVector[] {
  return JSON.parse(JSON.stringify(vectors));
}

function checkConversations(source: string, specialTokens: Readonly<Record<string, string>>, vectors: unknown): void {
  const chatTemplate = compileChatTemplate(source, { now: Date.now });
  const prompt = new PromptTemplate({ chatTemplate, specialTokens, defaults: {} });
  for (const vector of conversationVectors(vectors)) {
    const tools = vector.tools.map(({ function: raw }): ToolDefinition => ({ name: text(raw["name"]), raw }));
    const rendered = prompt.render({
      messages: JSON.parse(JSON.stringify(vector.messages)).map(message),
      tools,
      settings: vector.settings,
      addGenerationPrompt: vector.add_generation_prompt,
    });
    assert.equal(plain(rendered), vector.text, JSON.stringify(vector.messages));
  }
}

Deno.test("a chat template renders what Python's Jinja renders", () => {
  for (const { template, variables, ...wanted } of jinjaVectors) {
    const names: { readonly [name: string]: Json } = JSON.parse(JSON.stringify(variables));
    if ("error" in wanted) assert.throws(() => render(template, names), VerbatimError, template);
    else assert.equal(plain(render(template, names)), wanted.text, template);
  }
});

Deno.test("Qwen3's template renders conversations as Python does", async () => {
  const { chatTemplate, specialTokens } = await qwen3Tokenizer();
  checkConversations(chatTemplate ?? "", specialTokens, qwen3Vectors);
});

Deno.test("a template in Qwen3-Coder's format renders conversations as Python does", async () => {
  const source = await Deno.readTextFile(new URL("../../tests/fixtures/templates/qwen3_coder.jinja", import.meta.url));
  checkConversations(source, {}, coderVectors);
});

Deno.test("a chat template gives the words with which it refuses, and those of errors", () => {
  assert.throws(() => render("{{ raise_exception('Roles must ' ~ verb) }}", { verb: "alternate" }), (error) => {
    assert.ok(error instanceof VerbatimError);
    assert.equal(error.code, "invalid_request");
    assert.equal(error.details?.["reason"], "Roles must alternate");
    return true;
  });
  assert.throws(() => render("{{ messages[0].role }}", { messages: [] }), { code: "invalid_request" });
  assert.throws(() => render("{{ 'a' + 1 }}"), { message: /can only concatenate str/ });
});

Deno.test("a chat template that can't be compiled is refused before it renders", () => {
  for (const source of ["{% if %}", "{{ x|unheard }}", "{{ x is unheard }}", "{% include 'x' %}"]) {
    assert.throws(() => render(source), { code: "not_ready" }, source);
  }
});

Deno.test("a chat template writes the date it is given", () => {
  assert.equal(plain(render("{{ strftime_now('%d %B %Y, %H:%M') }}")), "04 July 2024, 05:06");
  assert.throws(() => render("{{ strftime_now('%q') }}"), { code: "unsupported" });
});

Deno.test("what comes from outside stays marked through everything a template does with it", () => {
  const content = "<|im_end|>";
  const marked = (source: string) => {
    const result = render(source, { content, list: [content, "x"], dict: { [content]: content } });
    const spans = spansOf(result);
    const pieces: string[] = [];
    for (let at = 0; at < spans.length; at += 2) pieces.push(plain(result).slice(spans[at], spans[at + 1]));
    return pieces;
  };
  assert.deepEqual(marked("<|im_start|>{{ content }}<|im_end|>"), [content]);
  assert.deepEqual(marked("{{ ' a' + content + 'b ' }}"), [content]);
  assert.deepEqual(marked("{{ (' ' ~ content ~ ' ') | trim }}<|im_end|>"), [content]);
  assert.deepEqual(marked("{{ content.split('_')[1] }}{{ content[2:] }}"), ["end|>im_end|>"]);
  assert.deepEqual(marked("{{ ('y' ~ content ~ 'y').strip('y') }}<|im_end|>"), [content]);
  assert.deepEqual(marked("{{ content.replace('im', '<|im_end|>') }}"), ["<|", "_end|>"]);
  assert.deepEqual(marked("{{ list | join('<|im_end|>') }}"), [content, "x"]);
  assert.deepEqual(marked("{{ dict | tojson }}"), [`{"${content}": "${content}"}`]);
  assert.deepEqual(marked("{% for k, v in dict.items() %}{{ k }}<|im_end|>{{ v }}{% endfor %}"), [content, content]);
  assert.deepEqual(marked("{% set x %}a{{ content }}{% endset %}{{ x | upper }}"), ["A<|IM_END|>"]);
  assert.deepEqual(marked("{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(content) }}<|im_end|>"), [content]);
  assert.deepEqual(marked("{{ content | string | reverse | list | first }}"), [">"]);
  assert.deepEqual(marked("<|im_end|>{{ 'b' if content else 'c' }}{{ content | length }}"), []);
});

Deno.test("format fills fields by place, number and name, and keeps what is foreign", () => {
  assert.equal(plain(render("{{ '<{}|{}>'.format('a', 1) }}")), "<a|1>");
  assert.equal(plain(render("{{ '{1}{0}{{}}{x}'.format('a', 'b', x=true) }}")), "ba{}True");
  assert.deepEqual(spansOf(render("{{ '<{}>'.format(x) }}", { x: "abc" })), [1, 4]);
  assert.throws(() => render("{{ '{}{}'.format('a') }}"), { code: "invalid_request" });
  assert.throws(() => render("{{ '{:>8}'.format('a') }}"), { code: "invalid_request" });
});

Deno.test("filters that choose items find none in None", () => {
  assert.equal(plain(render("{{ none | selectattr('a') | list | length }}{{ none | reject | list | length }}")), "00");
});
