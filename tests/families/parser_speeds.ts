/** How fast each parser reads plain text in one go with tools on: completions are mostly text without a call. */

import { createCompletionParser } from "../../shared/rendering/create_completion_parser.ts";
import { TOOL_CALL_PARSERS } from "../../shared/rendering/tool_calls/tool_call_parsers.ts";
import { TOOL } from "./family_conversation.ts";

const TEXTS = {
  prose: 'The function reads the file, then it writes what it found; it\'s all there, "quoted" and not.\n\n',
  code: "if (a[0] < b) { out.push({ x: [1, 2], y: `${a}` }); } // <T> & more\n",
};
const LENGTH = 2_000_000;
const ROUNDS = 5;

/** MB/s of one parser, by kind of text. */
export interface ParserSpeed {
  readonly name: string;
  readonly prose: number;
  readonly code: number;
}

export function parserSpeeds(): ParserSpeed[] {
  return TOOL_CALL_PARSERS.map((name) => ({ name, prose: speed(name, TEXTS.prose), code: speed(name, TEXTS.code) }));
}

function speed(toolCallParser: string, unit: string): number {
  const text = unit.repeat(Math.ceil(LENGTH / unit.length));
  let best = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const parser = createCompletionParser({
      toolCallParser,
      reasoningParser: null,
      tools: [TOOL],
      toolChoice: "auto",
      opensReasoning: false,
    });
    const start = performance.now();
    parser.push(text);
    parser.finish();
    parser.result();
    best = Math.min(best, performance.now() - start);
  }
  return text.length / 1e6 / (best / 1000);
}
