import assert from "node:assert/strict";
import {
  parsePieces,
  parserOptions,
  parseWhole,
  randomFrom,
  splitRandomly,
} from "../../tests/fixtures/parse_completion.ts";
import { optionsOf, type ParserVector, readParserVectors } from "../../tests/fixtures/parser_vectors.ts";
import type { ParsedCompletion } from "../ports/completion_parser.ts";

const SPLITS_PER_VECTOR = 20;

/** The message as vectors compare it. */
function comparable(result: ParsedCompletion, isBytes: boolean): unknown {
  return {
    reasoning: result.reasoning,
    content: result.content,
    calls: result.toolCalls.map((call) => [call.name, isBytes ? call.arguments : orderedJson(call.arguments)]),
    status: result.parse.status,
    problems: [...result.parse.problems].sort(),
  };
}

function expected({ expect }: ParserVector): unknown {
  const isBytes = expect.arguments_compare === "bytes";
  return {
    reasoning: expect.reasoning,
    content: expect.content,
    calls: expect.tool_calls.map((call) => [call.name, isBytes ? call.arguments : orderedJson(call.arguments)]),
    status: expect.parse.status,
    problems: [...expect.parse.problems].sort(),
  };
}

function orderedJson(json: string): string {
  return JSON.stringify(JSON.parse(json));
}

for (const vector of readParserVectors()) {
  Deno.test(`createCompletionParser reads ${vector.id} as the rules decide, however it is cut`, () => {
    const options = optionsOf(vector);
    const { result } = parsePieces(options, [vector.text]);
    assert.deepEqual(comparable(result, vector.expect.arguments_compare === "bytes"), expected(vector));
    assert.deepEqual(parsePieces(options, vector.text.split("")).result, result);
    const random = randomFrom(vector.id.length * 7919 + vector.text.length);
    for (let round = 0; round < SPLITS_PER_VECTOR; round++) {
      assert.deepEqual(parsePieces(options, splitRandomly(vector.text, random)).result, result);
    }
  });
}

Deno.test("createCompletionParser refuses a name that no parser has and lists those there are", () => {
  assert.throws(
    () => parseWhole({ toolCallParser: "qwen26" }, ""),
    { code: "invalid_request", message: /"qwen26".*qwen25/ },
  );
  assert.throws(
    () => parseWhole({ reasoningParser: "qwen4" }, ""),
    { code: "invalid_request", message: /"qwen4".*qwen3/ },
  );
});

Deno.test("createCompletionParser takes reasoning names in any case, tool-call names as they are", () => {
  assert.equal(parseWhole({ reasoningParser: "Qwen3" }, "<think>r</think>a").reasoning, "r");
  assert.throws(() => parseWhole({ toolCallParser: "Qwen25" }, ""), { code: "invalid_request" });
});

Deno.test("createCompletionParser without parsers returns the text byte for byte", () => {
  const text = " <think>a</think>\n<tool_call>{}</tool_call><|im_end|>";
  assert.deepEqual(parseWhole({}, text), {
    reasoning: null,
    content: text,
    toolCalls: [],
    parse: { status: "ok", problems: [] },
  });
});

Deno.test("createCompletionParser leaves call markup alone where calls are not wanted", () => {
  const text = '<tool_call>{"name": "noop"}</tool_call>';
  for (const options of [{ tools: [] }, { toolChoice: "none" as const }]) {
    const result = parseWhole({ toolCallParser: "qwen25", ...options }, text);
    assert.deepEqual([result.content, result.toolCalls], [text, []]);
  }
});

Deno.test("createCompletionParser reads calls under any other tool choice", () => {
  const text = '<tool_call>{"name": "noop"}</tool_call>';
  for (const toolChoice of ["auto" as const, "required" as const, { name: "noop" }]) {
    assert.equal(parseWhole({ toolCallParser: "qwen25", toolChoice }, text).toolCalls.length, 1);
  }
});

Deno.test("createCompletionParser takes reasoning of channels beside calls of another format", () => {
  const text = "<|channel|>analysis<|message|>r<|end|><|start|>assistant<|channel|>final<|message|>" +
    '<tool_call>{"name": "noop"}</tool_call>';
  const result = parseWhole({ toolCallParser: "qwen25", reasoningParser: "gpt-oss" }, text);
  assert.deepEqual([result.reasoning, result.toolCalls], ["r", [{ name: "noop", arguments: "{}" }]]);
});

Deno.test("createCompletionParser reads a recipient in the header that the generation prompt began", () => {
  const parsers = { toolCallParser: "gpt-oss", reasoningParser: "gpt-oss" };
  const body = '<|message|>{"city": "Bonn"}<|call|>';
  for (
    const header of [
      " to=functions.get_weather<|channel|>commentary json",
      "to=get_weather<|channel|>commentary <|constrain|>json",
    ]
  ) {
    const options = parserOptions(parsers);
    for (const pieces of [[header + body], (header + body).split("")]) {
      const { result } = parsePieces(options, pieces);
      assert.deepEqual([result.toolCalls, result.content, result.parse.status], [
        [{ name: "get_weather", arguments: '{"city": "Bonn"}' }],
        null,
        "ok",
      ]);
    }
  }
  for (const text of ["to=be or not", "to=be<|channel|>", "to", " to=a b<|channel|>final<|message|>c"]) {
    const { result } = parsePieces(parserOptions(parsers), [text]);
    assert.deepEqual(result.toolCalls, [], text);
  }
});

Deno.test("createCompletionParser releases text, and each call, as soon as it is certain", () => {
  const options = { toolCallParser: "qwen25", reasoningParser: "qwen3", tools: [{ name: "noop", raw: {} }] };
  const pieces = ["<think>wh", "y</thi", "nk>\n", "Look", "ing. ", "<tool_call>", '{"name": "noop"}', "</tool_call>"];
  const { deltas } = parsePieces({ ...options, toolChoice: "auto", opensReasoning: false }, pieces);
  assert.deepEqual(deltas, [
    { type: "reasoning", text: "wh" },
    { type: "reasoning", text: "y" },
    { type: "content", text: "Look" },
    { type: "content", text: "ing." },
    { type: "tool_call", name: "noop", arguments: "{}" },
  ]);
});

Deno.test("createCompletionParser never cuts a character in two", () => {
  const { deltas } = parsePieces(
    { toolCallParser: null, reasoningParser: "qwen3", tools: [], toolChoice: "auto", opensReasoning: true },
    "a😀b</think>c😀".split(""),
  );
  for (const delta of deltas) assert.ok(delta.type === "tool_call" || delta.text.isWellFormed());
});
