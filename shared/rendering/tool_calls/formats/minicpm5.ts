/** MiniCPM 5: `<function name="NAME">` with `<param name="KEY">` elements, whose values may be CDATA sections. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

const SYNTAX: ElementSyntax = {
  wrapper: null,
  call: { open: "<function name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  callEnd: "</function>",
  argument: { open: "<param name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
  valueEnd: "</param>",
  cdata: true,
};

export const MINICPM5: ToolCallFormat = {
  names: ["minicpm5"],
  stopTokens: ["<|im_end|>", "</s>"],
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
