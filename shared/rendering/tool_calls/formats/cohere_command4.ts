/** Cohere Command A: a list of calls between `<|START_ACTION|>` and `<|END_ACTION|>`. */

import { ListReader, type ListSyntax } from "../list_machine.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

/** What frames the answer. */
export const COHERE_FRAMING: readonly string[] = [
  "<|START_TEXT|>",
  "<|END_TEXT|>",
  "<|START_RESPONSE|>",
  "<|END_RESPONSE|>",
];

const SYNTAX: ListSyntax = {
  starts: ["<|START_ACTION|>"],
  end: "<|END_ACTION|>",
  keys: { type: "named", name: ["tool_name", "name"], arguments: ["parameters", "arguments"] },
};

export const COHERE_COMMAND4: ToolCallFormat = {
  names: ["cohere_command4"],
  framing: COHERE_FRAMING,
  stopTokens: ["<|END_OF_TURN_TOKEN|>"],
  machine: { type: "blocks", reader: (context) => new ListReader(context, SYNTAX) },
};
