/** DeepSeek V3.2 and V4: DSML elements, or the argument object as JSON, within an invocation. The wrapper's name differs. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import { DEEPSEEK_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

/** The elements within a wrapper of this name. */
export function dsmlSyntax(wrapper: string): ElementSyntax {
  return {
    wrapper: { start: `<｜DSML｜${wrapper}>`, end: `</｜DSML｜${wrapper}>` },
    call: { open: "<｜DSML｜invoke name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
    callEnd: "</｜DSML｜invoke>",
    argument: { open: "<｜DSML｜parameter name=", stop: /[<>\n]/g, close: ">", attribute: "name" },
    valueEnd: "</｜DSML｜parameter>",
    jsonBody: true,
  };
}

const SYNTAX = dsmlSyntax("function_calls");

export const DEEPSEEKV32: ToolCallFormat = {
  names: ["deepseekv32"],
  stopTokens: DEEPSEEK_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
