/** LFM2: a list of Python or JSON calls between markers. */

import { COMMON_KEYS } from "../json_call.ts";
import { ListReader, type ListSyntax } from "../list_machine.ts";
import { CHATML_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ListSyntax = {
  starts: ["<|tool_call_start|>"],
  end: "<|tool_call_end|>",
  keys: COMMON_KEYS,
  python: true,
};

export const LFM2: ToolCallFormat = {
  names: ["lfm2"],
  stopTokens: CHATML_STOPS,
  machine: { type: "blocks", reader: (context) => new ListReader(context, SYNTAX) },
};
