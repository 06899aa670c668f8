/** Qwen 3 Coder and Step 3.5: `<function=NAME>` with `<parameter=KEY>` elements whose values stand on lines of their own. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import { CHATML_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

/** The elements, which MiMo shares. */
export const FUNCTION_ELEMENTS: ElementSyntax = {
  wrapper: { start: "<tool_call>", end: "</tool_call>" },
  call: { open: "<function=", stop: /[<>\n]/g, close: ">" },
  callEnd: "</function>",
  argument: { open: "<parameter=", stop: /[<>\n]/g, close: ">" },
  valueEnd: "</parameter>",
};

const SYNTAX: ElementSyntax = { ...FUNCTION_ELEMENTS, valueOnLines: true };

export const QWEN3_CODER: ToolCallFormat = {
  names: ["qwen3_coder", "step3p5"],
  stopTokens: CHATML_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
