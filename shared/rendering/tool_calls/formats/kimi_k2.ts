/** Kimi K2: the call's id, which holds the name, and the argument object. */

import { JSON_ARGUMENTS } from "../call_body.ts";
import { KIMI_STOPS } from "../stop_tokens.ts";
import { TaggedReader, type TaggedSyntax } from "../tagged_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedSyntax = {
  wrapper: { start: "<|tool_calls_section_begin|>", end: "<|tool_calls_section_end|>" },
  start: ["<|tool_call_begin|>"],
  end: "<|tool_call_end|>",
  // The id is `functions.NAME:N`; what it counts is not read.
  head: {
    stop: /[<{\n]/g,
    pattern: /^(?:functions\.)?(\S+):\d+$/,
    then: [{ literal: "<|tool_call_argument_begin|>", required: true }],
  },
  value: JSON_ARGUMENTS,
};

export const KIMI_K2: ToolCallFormat = {
  names: ["kimi_k2"],
  stopTokens: KIMI_STOPS,
  machine: { type: "blocks", reader: (context) => new TaggedReader(context, SYNTAX) },
};
