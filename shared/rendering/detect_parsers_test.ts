import assert from "node:assert/strict";
import { qwen3Tokenizer } from "../../tests/fixtures/qwen3_tokenizer.ts";
import { isReasoningParser, isToolCallParser } from "./create_completion_parser.ts";
import { detectParsers } from "./detect_parsers.ts";
import { detectThinkingSwitch } from "./thinking_switch.ts";

const ON = "{% if enable_thinking is defined and enable_thinking is false %}";
const OFF = "{% if not enable_thinking is defined %}{% set enable_thinking = false %}{% endif %}";
const THINKING_OFF = "{% if not thinking is defined %}{% set thinking = false %}{% endif %}";

/** What stands in a template, what in a vocabulary, and the parsers that fit. */
const CASES: readonly [
  template: string,
  tokens: readonly string[],
  toolCalls: string | null,
  reasoning: string | null,
][] = [
  ["{{ messages }}", [], null, null],
  ['<tool_call>\\n{"name": <think>', [], "qwen25", "deepseek-r1"],
  ["<|im_start|> <tool_call>", [], "qwen25", null],
  [`<|im_start|> <tool_call> <think> ${ON}`, ["<tool_call>"], "qwen25", "qwen3"],
  ["<|im_start|>assistant\\n<think>\\n <tool_call>", [], "qwen25", "qwen3"],
  ["<function= <parameter= <tool_call>", [], "qwen3_coder", null],
  [`<function= <parameter= <tool_call> <think> ${ON}`, [], "qwen3_coder", "qwen3"],
  [`<function= <parameter= <tool_call> <think> ${OFF}`, [], "mimo", "mimo"],
  [`<function= <parameter= <think> ${ON} truncate_history_thinking`, [], "qwen3_coder", "nemotron_3"],
  [`[gMASK]<sop> {{ '<tool_call>' + tc.name }} ${ON}`, ["<tool_call>", "<|user|>"], "glm47", "glm45"],
  [`[gMASK]<sop> /nothink {{ '\\n<tool_call>' }} ${ON}`, ["<tool_call>", "<|user|>"], "glm45", "glm45"],
  ["anything", ["<arg_key>", "<arg_value>"], "glm45", null],
  [`unescaped <tool_call>function-name <arg_key> <arg_value>`, [], "poolside_v1", "poolside_v1"],
  ["<｜tool▁calls▁begin｜><｜tool▁sep｜> ```json </think>", [], "deepseekv3", "deepseek-r1"],
  [`<｜tool▁calls▁begin｜><｜tool▁sep｜> </think> ${THINKING_OFF}`, [], "deepseekv31", "deepseek-v3"],
  [`<｜DSML｜function_calls> <think> ${THINKING_OFF}`, [], "deepseekv32", "deepseek-v3"],
  ["<｜DSML｜tool_calls> <think>", [], "deepseekv4", "deepseek-v4"],
  ["<think>", ["<|tool_calls_section_begin|>"], "kimi_k2", "kimi_k2"],
  ["◁think▷", [], null, "kimi"],
  ["", ["<|open|>", "<|close|>", "<|sep|>"], "kimi_k3", "kimi_k3"],
  ["<|channel|>analysis <tool_call>", [], "gpt-oss", "gpt-oss"],
  ["<|channel>thought", [], "gemma4", "gemma4"],
  ["", ["<|inner_prefix|>"], "apertus2509", "apertus2509"],
  ["<minimax:tool_call> <think>", [], "minimax-m2", "minimax"],
  ["<mm:think>", [], "minimax-m3", "minimax-m3"],
  [`default_thinking_sys ${ON}`, [], "interns1", "interns1"],
  ["[TOOL_CALLS]", [], "mistral", null],
  ["[TOOL_CALLS] [THINK]", [], "mistral", "mistral"],
  ["<|tool_call_start|>", [], "lfm2", null],
  ["<|tool_call_start|> <think>", [], "lfm2", "qwen3"],
  ["<function name= <param name=", [], "minicpm5", null],
  ["<tool_calls> <think>", ["<tool_calls:opensource>", "<tool_sep:opensource>"], "hunyuan", "hunyuan"],
  ["Step-3.5 <function= <parameter=", [], "step3p5", "step3p5"],
  ["<steptml:invoke", [], "step3", "step3"],
  ["<|START_ACTION|> <|END_THINKING|>", [], "cohere_command4", "cohere_command4"],
  ["function call<|role_sep|>", [], "gigachat3", null],
  ["<|content_invoke_tool_json|>", [], "inkling", "inkling"],
  ["<atem:function_calls>", [], "muse", "muse"],
  ["<|python_start|>", [], "pythonic", null],
  ["<|python_tag|>", [], "llama3", null],
];

Deno.test("detectParsers finds the parsers that fit", () => {
  for (const [chatTemplate, addedTokens, toolCallParser, reasoningParser] of CASES) {
    assert.deepEqual(detectParsers({ chatTemplate, addedTokens }), { toolCallParser, reasoningParser }, chatTemplate);
  }
});

Deno.test("detectParsers names parsers that exist", () => {
  for (const [chatTemplate, addedTokens] of CASES) {
    const { toolCallParser, reasoningParser } = detectParsers({ chatTemplate, addedTokens });
    assert.ok(toolCallParser === null || isToolCallParser(toolCallParser), String(toolCallParser));
    assert.ok(reasoningParser === null || isReasoningParser(reasoningParser), String(reasoningParser));
  }
});

Deno.test("detectParsers knows Qwen3's own template", async () => {
  const tokenizer = await qwen3Tokenizer();
  assert.deepEqual(
    detectParsers({ chatTemplate: tokenizer.chatTemplate ?? "", addedTokens: tokenizer.addedTokens.keys() }),
    { toolCallParser: "qwen25", reasoningParser: "qwen3" },
  );
});

Deno.test("detectThinkingSwitch reads the setting and what holds without it", () => {
  const cases: [string, ReturnType<typeof detectThinkingSwitch>][] = [
    ["nothing", null],
    ["{{ rethinking }}", null],
    [ON, { setting: "enable_thinking", byDefault: true }],
    ["enable_thinking is not defined or enable_thinking", { setting: "enable_thinking", byDefault: true }],
    ["set enable_thinking = enable_thinking if enable_thinking is defined else True", {
      setting: "enable_thinking",
      byDefault: true,
    }],
    ["namespace(a=1, enable_thinking=true)", { setting: "enable_thinking", byDefault: true }],
    [OFF, { setting: "enable_thinking", byDefault: false }],
    [THINKING_OFF, { setting: "thinking", byDefault: false }],
    ["{%- if not thinking is defined -%}\n  {%- set thinking = true -%}", { setting: "thinking", byDefault: true }],
  ];
  for (const [template, wanted] of cases) assert.deepEqual(detectThinkingSwitch(template), wanted, template);
});
