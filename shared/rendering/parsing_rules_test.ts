import assert from "node:assert/strict";
import { parsePieces, parserOptions, randomFrom, splitRandomly } from "../../tests/fixtures/parse_completion.ts";

/** A text and the message it is; calls as `name` and arguments in one string. */
interface Case {
  readonly about: string;
  readonly parser: string;
  readonly reasoningParser?: string;
  readonly opens?: true;
  readonly text: string;
  readonly reasoning?: string;
  readonly content?: string;
  readonly calls?: readonly string[];
  readonly status?: "malformed" | "truncated";
  readonly problems?: readonly string[];
}

const NOOP = '{"name": "noop", "arguments": {}}';
const NO_END = "<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>";
const NOOP_ELEMENT = "<tool_call>\n<function=noop>\n</function>\n</tool_call>";

const CASES: readonly Case[] = [
  // Rule 3
  {
    about: "white space between markers and around a stray closing marker",
    parser: "qwen25",
    reasoningParser: "qwen3",
    text: `\n<think> \n<think>r<tool_call>${NOOP}</tool_call>\n</think>\n\nans</think>`,
    reasoning: "r",
    content: "ans</think>",
    calls: ["noop{}"],
  },
  {
    about: "a call right after the prompt opened the block",
    parser: "qwen25",
    reasoningParser: "qwen3",
    opens: true,
    text: `<tool_call>${NOOP}</tool_call>`,
    calls: ["noop{}"],
  },
  {
    about: "a closing marker in an argument",
    parser: "qwen25",
    reasoningParser: "qwen3",
    opens: true,
    text: 'r<tool_call>{"name": "noop", "arguments": {"a": "</think>"}}</tool_call></think>b',
    reasoning: "r",
    content: "b",
    calls: ['noop{"a": "</think>"}'],
  },
  {
    about: "no text at all in an open block",
    parser: "qwen25",
    reasoningParser: "qwen3",
    opens: true,
    text: "",
    status: "truncated",
  },
  {
    about: "bare JSON after reasoning",
    parser: "llama3",
    reasoningParser: "deepseek-r1",
    opens: true,
    text: 'r</think>\n\n{"name": "noop", "parameters": {}}',
    reasoning: "r",
    calls: ["noop{}"],
  },
  {
    about: "the answer's beginning closes reasoning",
    parser: "kimi_k3",
    reasoningParser: "kimi_k3",
    text: "<|open|>think<|sep|>r<|open|>response<|sep|>hi",
    reasoning: "r",
    content: "hi",
  },
  // Rule 6
  {
    about: "an unclosed string in one call, another call behind it",
    parser: "qwen25",
    text: `a <tool_call>{"name": "f", "arguments": {"c": "ls}}</tool_call><tool_call>${NOOP}</tool_call>`,
    content: 'a <tool_call>{"name": "f", "arguments": {"c": "ls}}</tool_call>',
    calls: ["noop{}"],
    status: "malformed",
  },
  {
    about: "an unclosed string that ends with its end marker",
    parser: "qwen25",
    text: '<tool_call>{"name": "f", "arguments": {"c": "ls}}</tool_call>',
    content: '<tool_call>{"name": "f", "arguments": {"c": "ls}}</tool_call>',
    status: "malformed",
  },
  {
    about: "an end marker quoted in a string that is cut off",
    parser: "qwen25",
    text: '<tool_call>{"name": "f", "arguments": {"c": "</tool_call> x',
    content: '<tool_call>{"name": "f", "arguments": {"c": "</tool_call> x',
    status: "truncated",
  },
  {
    about: "text between the JSON and its end marker",
    parser: "qwen25",
    text: `<tool_call>${NOOP} x</tool_call>y`,
    content: `<tool_call>${NOOP} x</tool_call>y`,
    status: "malformed",
  },
  {
    about: "values that never end, then a good call",
    parser: "qwen3_coder",
    text: `${NO_END}\n${NO_END}\n${NOOP_ELEMENT} bye`,
    content: `${NO_END}\n${NO_END}\nbye`,
    calls: ["noop{}"],
    status: "malformed",
  },
  {
    about: "a value that is cut off quotes the end of a call",
    parser: "qwen3_coder",
    text: '<function=f>\n<parameter=a>\nx.split("</function>")\n',
    content: '<function=f>\n<parameter=a>\nx.split("</function>")\n',
    status: "truncated",
  },
  {
    about: "a call without its own end within the wrapper's",
    parser: "qwen3_coder",
    text: `<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>\n${NOOP_ELEMENT}`,
    content: "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>",
    calls: ["noop{}"],
    status: "malformed",
  },
  {
    about: "a bad and a good call in one wrapper",
    parser: "qwen3_coder",
    text: "<tool_call>\n<function=f>\nbad\n</function>\n<function=noop>\n</function>\n</tool_call>z",
    content: "<function=f>\nbad\n</function>\nz",
    calls: ["noop{}"],
    status: "malformed",
  },
  {
    about: "an empty section",
    parser: "kimi_k2",
    text: "<|tool_calls_section_begin|><|tool_calls_section_end|>",
    content: "<|tool_calls_section_begin|><|tool_calls_section_end|>",
    status: "malformed",
  },
  {
    about: "text between the calls of a section",
    parser: "kimi_k2",
    text: "<|tool_calls_section_begin|><|tool_call_begin|>noop:0<|tool_call_argument_begin|>{}<|tool_call_end|>\n t " +
      "<|tool_call_begin|>noop:1 <|tool_call_argument_begin|> {} <|tool_call_end|><|tool_calls_section_end|>",
    content: "t",
    calls: ["noop{}", "noop{}"],
  },
  {
    about: "a malformed element of a list between good ones",
    parser: "mistral",
    text: `[TOOL_CALLS] [${NOOP}, {"name": "x", "arguments": {"a": }}, {"name": "noop"}] bye`,
    content: '{"name": "x", "arguments": {"a": }}\nbye',
    calls: ["noop{}", "noop{}"],
    status: "malformed",
  },
  {
    about: "a list without its bracket, and one that ends with a comma",
    parser: "mistral",
    text: `[TOOL_CALLS] [${NOOP} [TOOL_CALLS][${NOOP},`,
    calls: ["noop{}", "noop{}"],
    status: "truncated",
  },
  {
    about: "an unclosed string before the next start",
    parser: "mistral",
    text: '[TOOL_CALLS]f[ARGS]{"a": "A}[TOOL_CALLS]noop[CALL_ID]c1[ARGS]{}',
    content: '[TOOL_CALLS]f[ARGS]{"a": "A}',
    calls: ["noop{}"],
    status: "malformed",
  },
  {
    about: "an empty list",
    parser: "mistral",
    text: "[TOOL_CALLS] []",
    content: "[TOOL_CALLS] []",
    status: "malformed",
  },
  // Rule 7
  {
    about: "arguments encoded twice over",
    parser: "qwen25",
    text: '<tool_call>{"name": "noop", "arguments": "\\"{}\\""}</tool_call>',
    content: '<tool_call>{"name": "noop", "arguments": "\\"{}\\""}</tool_call>',
    status: "malformed",
  },
  {
    about: "arguments as a string where the body is the arguments",
    parser: "deepseekv31",
    text: '<｜tool▁call▁begin｜>noop<｜tool▁sep｜>"{\\"a\\": 1}"<｜tool▁call▁end｜>',
    calls: ['noop{"a": 1}'],
  },
  {
    about: "no arguments at all where the body is the arguments",
    parser: "gpt-oss",
    text: "<|channel|>commentary to=functions.noop<|message|><|call|>",
    calls: ["noop{}"],
  },
  {
    about: "arguments before parameters, the last of a repeated key",
    parser: "hermes",
    text: '<tool_call>{"parameters": 1, "name": "x", "name": "noop", "arguments": {"a": 1}}</tool_call>',
    calls: ['noop{"a": 1}'],
  },
  // Rule 8
  {
    about: "a repeated parameter",
    parser: "qwen3_coder",
    text: "<function=get_weather><parameter=city>A</parameter><parameter=days>1</parameter>" +
      "<parameter=city>B</parameter></function>",
    calls: ['get_weather{"city":"B","days":1}'],
  },
  {
    about: "a misfit, an unknown parameter, and a tool without a schema",
    parser: "minimax-m2",
    text: '<invoke name="get_weather"><parameter name="days">x</parameter><parameter name="no">1</parameter></invoke>' +
      '<invoke name="get_time"><parameter name="zone">1</parameter></invoke>',
    calls: ['get_weather{"days":"x","no":"1"}', 'get_time{"zone":"1"}'],
    problems: ["argument_type", "unknown_parameter"],
  },
  {
    about: "a parameter that closes itself, attributes in single quotes",
    parser: "minicpm5",
    text: "<function name='get_weather'><param name='city'/><param name=\"days\">2</param></function>",
    calls: ['get_weather{"city":"","days":2}'],
  },
  {
    about: "CDATA sections in a row",
    parser: "minicpm5",
    text: '<function name="get_weather"><param name="city"><![CDATA[a]]]]><![CDATA[></param>]]></param></function>',
    calls: ['get_weather{"city":"a]]></param>"}'],
  },
  {
    about: "a JSON body that is broken",
    parser: "deepseekv32",
    text: '<｜DSML｜invoke name="noop">\n{"a": }\n</｜DSML｜invoke>',
    content: '<｜DSML｜invoke name="noop">\n{"a": }\n</｜DSML｜invoke>',
    status: "malformed",
  },
  {
    about: "markers with the suffix of the released model",
    parser: "hunyuan",
    text: "<tool_calls:opensource><tool_call:opensource>noop<tool_sep:opensource></tool_call:opensource>" +
      "</tool_calls:opensource>",
    calls: ["noop{}"],
  },
  // llama3, pythonic, lfm2, gemma4
  {
    about: "a JSON answer that is cut off",
    parser: "llama3",
    text: '{"answer": [4',
    content: '{"answer": [4',
  },
  {
    about: "an answer that only begins like JSON",
    parser: "llama3",
    text: "{x | x > 0} is a set",
    content: "{x | x > 0} is a set",
  },
  {
    about: "a bare call that is cut off",
    parser: "llama3",
    text: '{"name": "noop", "parameters": {"a": "b',
    content: '{"name": "noop", "parameters": {"a": "b',
    status: "truncated",
  },
  {
    about: "a bare call that is broken",
    parser: "llama3",
    text: '{"name": "noop", "parameters": {bad}} x',
    content: '{"name": "noop", "parameters": {bad}} x',
    status: "malformed",
  },
  {
    about: "a bare Python dictionary with the keys of a call",
    parser: "llama3",
    text: "{'name': 'noop', 'x': {}, 'parameters': {'a': 'it}'}} x",
    content: "{'name': 'noop', 'x': {}, 'parameters': {'a': 'it}'}} x",
    status: "malformed",
  },
  {
    about: "an answer that is a Python dictionary",
    parser: "llama3",
    text: "{'name': 'Alice'} it is",
    content: "{'name': 'Alice'} it is",
  },
  {
    about: "code behind the marker",
    parser: "llama3",
    text: "<|python_tag|>print(1)",
    content: "<|python_tag|>print(1)",
    status: "malformed",
  },
  {
    about: "a bare list within text",
    parser: "pythonic",
    text: 'I call [get_weather(city="A", x=[1, (2, 3)], y={"a": -1})] now',
    content: "I call\nnow",
    calls: ['get_weather{"city":"A","x":[1,[2,3]],"y":{"a":-1}}'],
  },
  {
    about: "a comprehension",
    parser: "pythonic",
    text: '[get_weather(city="A") for x in y]',
    content: '[get_weather(city="A") for x in y]',
    status: "malformed",
  },
  {
    about: "a list cut off in its second call",
    parser: "pythonic",
    text: "[noop(), get_weather(",
    content: "get_weather(",
    calls: ["noop{}"],
    status: "truncated",
  },
  {
    about: "a bad element between good ones",
    parser: "lfm2",
    text: "<|tool_call_start|>[noop(), bad, noop()]<|tool_call_end|>",
    content: "bad",
    calls: ["noop{}", "noop{}"],
    status: "malformed",
  },
  {
    about: "braces in strings, bare words, null",
    parser: "gemma4",
    text: '<|tool_call>call:noop{a:<|"|>x}{<|"|>,<|"|>b:<|"|>:[null,bare word,-1.5,{}]}<tool_call|>',
    calls: ['noop{"a":"x}{","b:":[null,"bare word",-1.5,{}]}'],
  },
  // Channels
  {
    about: "a preamble and a final message",
    parser: "gpt-oss",
    reasoningParser: "gpt-oss",
    text: "<|channel|>commentary<|message|>a <|end|>\n<|start|>assistant<|channel|>final<|message|>b<|return|>",
    content: "a b",
  },
  {
    about: "the prompt opened the analysis",
    parser: "gpt-oss",
    reasoningParser: "gpt-oss",
    opens: true,
    text: "r\n<|start|>assistant to=functions.noop<|channel|>commentary json<|message|>{}<|end|>",
    reasoning: "r",
    calls: ["noop{}"],
  },
  {
    about: "a header that is cut off",
    parser: "gpt-oss",
    reasoningParser: "gpt-oss",
    text: "<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>comm",
    content: "a<|start|>assistant<|channel|>comm",
  },
  {
    about: "the header of a call that is cut off",
    parser: "gpt-oss",
    reasoningParser: "gpt-oss",
    text: "<|start|>assistant<|channel|>commentary to=functions.no",
    content: "<|start|>assistant<|channel|>commentary to=functions.no",
    status: "truncated",
  },
  {
    about: "a message to a tool that takes code",
    parser: "gpt-oss",
    reasoningParser: "gpt-oss",
    text: "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
    content: "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
    status: "malformed",
  },
  {
    about: "a call whose header lacks its start, and whose object lacks the name",
    parser: "inkling",
    reasoningParser: "inkling",
    text: 'noop<|content_invoke_tool_json|>{"args":{}}<|end_message|>',
    calls: ["noop{}"],
  },
  {
    about: "elements outside a message to a function",
    parser: "muse",
    reasoningParser: "muse",
    text: ' to=self<|message|>r<atem:invoke name="noop"></atem:invoke><|eot|>',
    reasoning: "r",
    calls: ["noop{}"],
  },
  // Leniency and framing
  {
    about: "a final stop token behind JSON without its end marker",
    parser: "qwen25",
    text: `<tool_call>${NOOP}<|im_end|>`,
    calls: ["noop{}"],
  },
  {
    about: "an answer's final stop token, and white space before it",
    parser: "glm45",
    text: "hi\n<|observation|>",
    content: "hi\n",
  },
  {
    about: "a stop token that is not final",
    parser: "qwen25",
    text: "<|im_end|> ends a turn",
    content: "<|im_end|> ends a turn",
  },
  {
    about: "the framing of an answer",
    parser: "cohere_command4",
    text: "<|START_TEXT|> a <|END_TEXT|><|END_OF_TURN_TOKEN|>",
    content: " a ",
  },
];

for (const sample of CASES) {
  const { about, parser: toolCallParser, reasoningParser = null, opens: opensReasoning = false, text } = sample;
  Deno.test(`${toolCallParser} reads ${about} as the rules decide`, () => {
    const options = parserOptions({ toolCallParser, reasoningParser, opensReasoning });
    const { result } = parsePieces(options, [text]);
    assert.deepEqual(
      {
        reasoning: result.reasoning,
        content: result.content,
        calls: result.toolCalls.map((call) => call.name + call.arguments),
        status: result.parse.status,
        problems: result.parse.problems.filter((kind) => kind !== "unknown_tool").sort(),
      },
      {
        reasoning: sample.reasoning ?? null,
        content: sample.content ?? null,
        calls: sample.calls ?? [],
        status: sample.status ?? "ok",
        problems: sample.problems ?? [],
      },
    );
    assert.deepEqual(parsePieces(options, text.split("")).result, result);
    assert.deepEqual(parsePieces(options, splitRandomly(text, randomFrom(text.length))).result, result);
  });
}
