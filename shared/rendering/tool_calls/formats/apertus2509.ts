/** Apertus: a list of objects that have the name as their only key. */

import { ListReader, type ListSyntax } from "../list_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ListSyntax = {
  starts: ["<|tools_prefix|>"],
  end: "<|tools_suffix|>",
  keys: { type: "any" },
};

export const APERTUS2509: ToolCallFormat = {
  names: ["apertus2509"],
  stopTokens: ["<|assistant_end|>"],
  machine: { type: "blocks", reader: (context) => new ListReader(context, SYNTAX) },
};
