/** Mistral: `[TOOL_CALLS]` and a list of JSON calls, or `[TOOL_CALLS]NAME[ARGS]` and the argument object for each call. */

import { COMMON_KEYS } from "../json_call.ts";
import { ListReader, type ListSyntax } from "../list_machine.ts";
import { SENTENCEPIECE_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ListSyntax = {
  starts: ["[TOOL_CALLS]"],
  end: null,
  keys: COMMON_KEYS,
  head: {
    stop: /[{"<\n]/g,
    pattern: /^([^\s[\]]+)\s*(?:\[CALL_ID\]\s*[\w-]*\s*)?(?:\[ARGS\])?$/,
    then: [{ literal: "[ARGS]", required: false }],
  },
};

export const MISTRAL: ToolCallFormat = {
  names: ["mistral"],
  stopTokens: SENTENCEPIECE_STOPS,
  machine: { type: "blocks", reader: (context) => new ListReader(context, SYNTAX) },
};
