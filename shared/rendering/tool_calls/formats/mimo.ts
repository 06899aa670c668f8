/** MiMo: Qwen 3 Coder's elements with values inline. */

import { ElementReader } from "../element_machine.ts";
import { CHATML_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";
import { FUNCTION_ELEMENTS } from "./qwen3_coder.ts";

export const MIMO: ToolCallFormat = {
  names: ["mimo"],
  stopTokens: CHATML_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, FUNCTION_ELEMENTS) },
};
