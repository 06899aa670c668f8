/** Step 3: `<steptml:invoke name="NAME">` elements, each within `<｜tool_call_begin｜>`. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ElementSyntax = {
  wrapper: { start: "<｜tool_calls_begin｜>", end: "<｜tool_calls_end｜>" },
  before: ["<｜tool_call_begin｜>", "function", "<｜tool_sep｜>"],
  after: "<｜tool_call_end｜>",
  call: { open: "<steptml:invoke name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  callEnd: "</steptml:invoke>",
  argument: { open: "<steptml:parameter name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  valueEnd: "</steptml:parameter>",
};

export const STEP3: ToolCallFormat = {
  names: ["step3"],
  stopTokens: ["<｜end▁of▁sentence｜>", "<|EOT|>"],
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
