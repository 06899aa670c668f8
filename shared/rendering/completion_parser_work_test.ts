import assert from "node:assert/strict";
import { parsePieces, parserOptions } from "../../tests/fixtures/parse_completion.ts";
import { TOOL_CALL_SAMPLES } from "../../tests/fixtures/parser_samples.ts";

/** How often a character may be looked at, on average, in one piece and in pieces of one character. */
const MOST_LOOKS_WHOLE = 4;
const MOST_LOOKS_RATIO = 3;
const LENGTH = 60_000;

function fill(piece: string): string {
  return piece.repeat(Math.ceil(LENGTH / piece.length));
}

/** Checks that the work grows as the text does, and with the text cut into characters no more than three times that. */
function checkWork(toolCallParser: string, text: string): void {
  const options = parserOptions({ toolCallParser, reasoningParser: "qwen3" });
  const whole = parsePieces(options, [text]).work;
  assert.ok(whole <= MOST_LOOKS_WHOLE * text.length, `${whole} looks at ${text.length} characters`);
  const cut = parsePieces(options, text.split("")).work;
  assert.ok(cut <= MOST_LOOKS_RATIO * whole, `${cut} looks cut up, ${whole} whole`);
}

const CODE = fill('if (a < b) { print("x\'s") }\\n');

/** Texts with one long value, by format. */
const LONG_VALUES: Readonly<Record<string, string>> = {
  qwen25: `<tool_call>{"name": "get_weather", "arguments": ${JSON.stringify({ city: CODE })}}</tool_call>`,
  qwen3_coder: `<function=get_weather><parameter=city>${CODE}</parameter></function>`,
  glm45: `<tool_call>get_weather<arg_key>city</arg_key><arg_value>${CODE}</arg_value></tool_call>`,
  pythonic: `[get_weather(city=${JSON.stringify(CODE)})]`,
  gemma4: `<|tool_call>call:get_weather{city:<|"|>${CODE}<|"|>}<tool_call|>`,
  "gpt-oss": `<|channel|>commentary to=functions.get_weather<|message|>${JSON.stringify({ city: CODE })}<|call|>`,
  mistral: `[TOOL_CALLS] [{"name": "get_weather", "arguments": ${JSON.stringify({ city: CODE })}}]`,
  "minimax-m3":
    `]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>${CODE}]<]minimax[>[</city>]<]minimax[>[</invoke>`,
};

for (const [toolCallParser, text] of Object.entries(LONG_VALUES)) {
  Deno.test(`a long value in a call of ${toolCallParser} is looked at a bounded number of times`, () => {
    assert.equal(parsePieces(parserOptions({ toolCallParser }), [text]).result.toolCalls.length, 1);
    checkWork(toolCallParser, text);
    // Cut off, it is looked at for an end that is not there.
    checkWork(toolCallParser, text.slice(0, LENGTH / 2));
  });
}

for (const { names, good, malformed, truncated } of TOOL_CALL_SAMPLES) {
  const [toolCallParser = ""] = names;
  Deno.test(`many blocks of ${toolCallParser}, good or not, are looked at a bounded number of times`, () => {
    for (const piece of [good, `${good}\n`, malformed, truncated, `${truncated}\n`, `${good}${truncated}`]) {
      checkWork(toolCallParser, fill(piece));
    }
  });
}

Deno.test("beginnings of markers, brackets, quotes and white space are looked at a bounded number of times", () => {
  const pieces = [
    "<",
    "<tool_cal",
    "[",
    "[f(",
    "[f(a=",
    "((",
    '"',
    "'",
    "\\",
    " ",
    "\n",
    "]<]",
    "```",
    "{",
    "[TOOL_CALLS",
  ];
  for (const toolCallParser of ["qwen25", "pythonic", "mistral", "llama3", "minimax-m3", "gigachat3", "gpt-oss"]) {
    for (const piece of pieces) checkWork(toolCallParser, fill(piece));
  }
});

Deno.test("starts of blocks that swallow one another are looked at a bounded number of times", () => {
  checkWork("qwen25", fill('<tool_call>{"a": "</tool_call>'));
  checkWork("qwen25", fill('<tool_call>{\\"</tool_call>'));
  checkWork("qwen3_coder", fill("<tool_call><function=f><parameter=a>x</function></tool_call>"));
  checkWork("kimi_k2", fill('<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a<|tool_call_end|>'));
  checkWork("cohere_command4", fill('<|START_ACTION|>[{\\"<|END_ACTION|>'));
  checkWork("lfm2", fill("<|tool_call_start|>[f(a='''\"<|tool_call_end|>"));
  checkWork("deepseekv32", fill('<｜DSML｜invoke name="f">{"a": "</｜DSML｜invoke>'));
});

Deno.test("plain text is handed on in one piece, however long", () => {
  const text = fill("The quick brown fox.\n");
  const { deltas } = parsePieces(parserOptions({ toolCallParser: "qwen25" }), [text]);
  // The white space at the end waits for the end.
  assert.deepEqual(deltas.map((delta) => delta.type), ["content", "content"]);
});
