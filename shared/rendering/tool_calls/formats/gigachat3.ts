/** GigaChat 3: one JSON call behind either of two markers. */

import { COMMON_KEYS } from "../json_call.ts";
import { ListReader, type ListSyntax } from "../list_machine.ts";
import { SENTENCEPIECE_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ListSyntax = {
  starts: ["<|function_call|>", "function call<|role_sep|>"],
  end: null,
  keys: COMMON_KEYS,
};

export const GIGACHAT3: ToolCallFormat = {
  names: ["gigachat3"],
  framing: ["<|message_sep|>"],
  stopTokens: SENTENCEPIECE_STOPS,
  machine: { type: "blocks", reader: (context) => new ListReader(context, SYNTAX) },
};
