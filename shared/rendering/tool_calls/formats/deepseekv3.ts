/** DeepSeek V3 and R1: the name, then the argument object in a fenced block. */

import { JSON_ARGUMENTS } from "../call_body.ts";
import { DEEPSEEK_STOPS } from "../stop_tokens.ts";
import { TaggedReader, type TaggedSyntax } from "../tagged_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedSyntax = {
  wrapper: { start: "<｜tool▁calls▁begin｜>", end: "<｜tool▁calls▁end｜>" },
  start: ["<｜tool▁call▁begin｜>", "function", "<｜tool▁sep｜>"],
  end: "<｜tool▁call▁end｜>",
  head: {
    stop: /[<{`\n]/g,
    pattern: /^(\S+)$/,
    then: [{ literal: "```json", required: false }, { literal: "```", required: false }],
  },
  beforeEnd: ["```"],
  value: JSON_ARGUMENTS,
};

export const DEEPSEEKV3: ToolCallFormat = {
  names: ["deepseekv3"],
  stopTokens: DEEPSEEK_STOPS,
  machine: { type: "blocks", reader: (context) => new TaggedReader(context, SYNTAX) },
};
