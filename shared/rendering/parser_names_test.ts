import assert from "node:assert/strict";
import {
  parsePieces,
  parserOptions,
  parseWhole,
  randomFrom,
  splitRandomly,
} from "../../tests/fixtures/parse_completion.ts";
import { REASONING_SAMPLES, TOOL_CALL_SAMPLES } from "../../tests/fixtures/parser_samples.ts";
import type { CompletionParserOptions } from "./create_completion_parser.ts";
import { isReasoningParser, REASONING_PARSERS } from "./reasoning/mod.ts";
import { isToolCallParser, TOOL_CALL_PARSERS } from "./tool_calls/mod.ts";

const TOOL_CALL_NAMES =
  "apertus2509 cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 gemma4 gigachat3 glm " +
  "glm45 glm47 gpt-oss hermes hunyuan inkling interns1 kimi_k2 kimi_k3 lfm2 llama3 mimo minicpm5 minimax-m2 minimax-m3 " +
  "mistral muse poolside_v1 pythonic qwen qwen25 qwen3_coder step3 step3p5 trinity";
const REASONING_NAMES =
  "apertus2509 cohere_command4 deepseek-r1 deepseek-v3 deepseek-v4 gemma4 glm45 gpt-oss hunyuan " +
  "inkling interns1 kimi kimi_k2 kimi_k3 mimo minimax minimax-append-think minimax-m3 mistral muse nemotron_3 " +
  "poolside_v1 qwen3 qwen3-thinking step3 step3p5";

/** Parses the text whole, and cut in several ways to the same end. */
function parse(options: Partial<CompletionParserOptions>, text: string): unknown {
  const whole = parserOptions(options);
  const { result } = parsePieces(whole, [text]);
  assert.deepEqual(parsePieces(whole, text.split("")).result, result);
  const random = randomFrom(text.length);
  for (let round = 0; round < 5; round++) {
    assert.deepEqual(parsePieces(whole, splitRandomly(text, random)).result, result);
  }
  return { ...result, toolCalls: result.toolCalls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) })) };
}

const OSLO = { name: "get_weather", arguments: { city: "Oslo", days: 2 } };
const OK = { status: "ok", problems: [] };

Deno.test("TOOL_CALL_PARSERS and REASONING_PARSERS are SGLang's names, each with samples", () => {
  assert.deepEqual(TOOL_CALL_PARSERS, TOOL_CALL_NAMES.split(" "));
  assert.deepEqual(REASONING_PARSERS, REASONING_NAMES.split(" "));
  assert.ok(TOOL_CALL_PARSERS.every(isToolCallParser) && REASONING_PARSERS.every(isReasoningParser));
  assert.ok(!isToolCallParser("llama4") && !isReasoningParser("think"));
  assert.deepEqual(TOOL_CALL_SAMPLES.flatMap(({ names }) => names).sort(), [...TOOL_CALL_PARSERS]);
  const split = REASONING_PARSERS.filter((name) => name !== "minimax-append-think");
  assert.deepEqual(REASONING_SAMPLES.flatMap(({ names }) => names).sort(), split);
});

for (const { names, good, malformed, truncated } of TOOL_CALL_SAMPLES) {
  for (const toolCallParser of names) {
    Deno.test(`tool-call parser ${toolCallParser} reads a call`, () => {
      const expected = { reasoning: null, content: null, toolCalls: [OSLO], parse: OK };
      assert.deepEqual(parse({ toolCallParser }, good), expected);
    });

    Deno.test(`tool-call parser ${toolCallParser} reads text, call, call, text`, () => {
      const expected = { reasoning: null, content: "Here.\nThere.", toolCalls: [OSLO, OSLO], parse: OK };
      assert.deepEqual(parse({ toolCallParser }, `Here.\n${good}\n${good}\nThere.`), expected);
    });

    Deno.test(`tool-call parser ${toolCallParser} keeps a malformed block as text`, () => {
      const expected = { reasoning: null, toolCalls: [], parse: { status: "malformed", problems: [] } };
      assert.deepEqual(parse({ toolCallParser }, malformed), { ...expected, content: malformed });
      assert.deepEqual(parse({ toolCallParser }, `a ${malformed}`), { ...expected, content: `a ${malformed}` });
    });

    Deno.test(`tool-call parser ${toolCallParser} reads the call beside a malformed block`, () => {
      const parts = { reasoning: null, toolCalls: [OSLO], parse: { status: "malformed", problems: [] } };
      assert.deepEqual(parse({ toolCallParser }, `${good}\n${malformed}`), { ...parts, content: malformed });
      assert.deepEqual(parse({ toolCallParser }, `${malformed}\n${good}`), { ...parts, content: malformed });
    });

    Deno.test(`tool-call parser ${toolCallParser} keeps a block that is cut off as text`, () => {
      const expected = { reasoning: null, parse: { status: "truncated", problems: [] }, content: truncated };
      assert.deepEqual(parse({ toolCallParser }, truncated), { ...expected, toolCalls: [] });
      assert.deepEqual(parse({ toolCallParser }, `${good}\n${truncated}`), { ...expected, toolCalls: [OSLO] });
    });

    Deno.test(`tool-call parser ${toolCallParser} leaves every beginning of a call as text or reads a call`, () => {
      for (let length = 0; length < good.length; length++) {
        const cut = good.slice(0, length);
        const result = parseWhole({ toolCallParser }, cut);
        if (result.toolCalls.length === 0) assert.equal(result.content ?? "", cut);
        else assert.deepEqual(JSON.parse(result.toolCalls[0]?.arguments ?? ""), OSLO.arguments);
      }
    });

    Deno.test(`tool-call parser ${toolCallParser} leaves an answer without calls alone`, () => {
      const text = " Use `a < b`, [1] or {x}.\n\n```json\n{}\n```\n";
      assert.deepEqual(parse({ toolCallParser }, text), { reasoning: null, content: text, toolCalls: [], parse: OK });
    });

    Deno.test(`tool-call parser ${toolCallParser} reports a tool that the request does not offer`, () => {
      const result = parseWhole({ toolCallParser, tools: [{ name: "noop", raw: {} }] }, good);
      assert.deepEqual([result.toolCalls[0]?.name, result.parse], [
        "get_weather",
        { status: "ok", problems: ["unknown_tool"] },
      ]);
    });
  }
}

for (const { names, good, stray, truncated } of REASONING_SAMPLES) {
  for (const reasoningParser of names) {
    Deno.test(`reasoning parser ${reasoningParser} tells reasoning from the answer`, () => {
      const expected = { reasoning: "why", content: "so", toolCalls: [], parse: OK };
      assert.deepEqual(parse({ reasoningParser }, good), expected);
    });

    Deno.test(`reasoning parser ${reasoningParser} takes a closing marker without a block as text`, () => {
      assert.deepEqual(parse({ reasoningParser }, stray), {
        reasoning: null,
        content: stray,
        toolCalls: [],
        parse: OK,
      });
    });

    Deno.test(`reasoning parser ${reasoningParser} takes a block that is never closed as reasoning`, () => {
      const expected = { reasoning: "why", content: null, toolCalls: [], parse: { status: "truncated", problems: [] } };
      assert.deepEqual(parse({ reasoningParser }, truncated), expected);
    });

    Deno.test(`reasoning parser ${reasoningParser} begins within the block where the prompt opened it`, () => {
      const expected = { reasoning: "why", content: null, toolCalls: [], parse: { status: "truncated", problems: [] } };
      assert.deepEqual(parse({ reasoningParser, opensReasoning: true }, "\nwhy"), expected);
    });
  }
}

Deno.test("reasoning parser minimax-append-think puts back the marker that the prompt ended with, and splits nothing", () => {
  const reasoningParser = "minimax-append-think";
  assert.equal(parseWhole({ reasoningParser, opensReasoning: true }, "why</think>so").content, "<think>why</think>so");
  assert.equal(parseWhole({ reasoningParser }, "so").content, "so");
  assert.equal(parseWhole({ reasoningParser, opensReasoning: true }, "why").parse.status, "ok");
});
