/** Qwen 2.5, Qwen 3 and Hermes: `<tool_call>{"name", "arguments"}</tool_call>`. Trinity writes the same. */

import { jsonCall } from "../call_body.ts";
import { COMMON_KEYS } from "../json_call.ts";
import { CHATML_STOPS } from "../stop_tokens.ts";
import { TaggedReader, type TaggedSyntax } from "../tagged_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedSyntax = {
  wrapper: null,
  start: ["<tool_call>"],
  end: "</tool_call>",
  head: null,
  value: jsonCall(COMMON_KEYS),
};

export const QWEN25: ToolCallFormat = {
  names: ["qwen25", "qwen", "hermes", "trinity"],
  stopTokens: CHATML_STOPS,
  machine: { type: "blocks", reader: (context) => new TaggedReader(context, SYNTAX) },
};
