/** Gemma 4: `<|tool_call>call:NAME{key:<|"|>text<|"|>}<tool_call|>`. */

import { GEMMA_ARGUMENTS } from "../gemma_value.ts";
import { GEMMA_STOPS } from "../stop_tokens.ts";
import { TaggedReader, type TaggedSyntax } from "../tagged_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: TaggedSyntax = {
  wrapper: null,
  start: ["<|tool_call>", "call:"],
  end: "<tool_call|>",
  head: { stop: /[<{\n]/g, pattern: /^(\S+)$/, then: [] },
  value: GEMMA_ARGUMENTS,
};

export const GEMMA4: ToolCallFormat = {
  names: ["gemma4"],
  stopTokens: GEMMA_STOPS,
  machine: { type: "blocks", reader: (context) => new TaggedReader(context, SYNTAX) },
};
