/** DeepSeek V4: the DSML of V3.2 within a wrapper of another name. */

import { ElementReader } from "../element_machine.ts";
import { DEEPSEEK_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";
import { dsmlSyntax } from "./deepseekv32.ts";

const SYNTAX = dsmlSyntax("tool_calls");

export const DEEPSEEKV4: ToolCallFormat = {
  names: ["deepseekv4"],
  stopTokens: DEEPSEEK_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
