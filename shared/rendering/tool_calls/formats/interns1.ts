/** Intern-S1: `<|action_start|><|plugin|>{"name", "parameters"}<|action_end|>`. */

import { jsonCall } from "../call_body.ts";
import { COMMON_KEYS } from "../json_call.ts";
import { CHATML_STOPS } from "../stop_tokens.ts";
import { TaggedReader, type TaggedSyntax } from "../tagged_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedSyntax = {
  wrapper: null,
  start: ["<|action_start|>", "<|plugin|>"],
  end: "<|action_end|>",
  head: null,
  value: jsonCall(COMMON_KEYS),
};

export const INTERNS1: ToolCallFormat = {
  names: ["interns1"],
  stopTokens: CHATML_STOPS,
  machine: { type: "blocks", reader: (context) => new TaggedReader(context, SYNTAX) },
};
