/** MiniMax M2: `<invoke name="NAME">` with `<parameter name="KEY">` elements within `<minimax:tool_call>`. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import { MINIMAX_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ElementSyntax = {
  wrapper: { start: "<minimax:tool_call>", end: "</minimax:tool_call>" },
  call: { open: "<invoke name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  callEnd: "</invoke>",
  argument: { open: "<parameter name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  valueEnd: "</parameter>",
};

export const MINIMAX_M2: ToolCallFormat = {
  names: ["minimax-m2"],
  stopTokens: MINIMAX_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
