/** GLM 4.5 and later, and Poolside: `<tool_call>NAME` with pairs of `<arg_key>` and `<arg_value>`. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax, TagHead } from "../element_syntax.ts";
import { GLM_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

/** A call's tag: the name goes on to whatever tag comes next. */
export const GLM_CALL: TagHead = { open: "<tool_call>", stop: /</g, close: "", forbidden: /[\s{}()[\]"'`,]/ };

/** An argument's tag, up to its value. */
export const GLM_ARGUMENT: TagHead = { open: "<arg_key>", stop: /</g, close: "</arg_key>", then: "<arg_value>" };

const SYNTAX: ElementSyntax = {
  wrapper: null,
  call: GLM_CALL,
  callEnd: "</tool_call>",
  argument: GLM_ARGUMENT,
  valueEnd: "</arg_value>",
};

export const GLM45: ToolCallFormat = {
  names: ["glm45", "glm", "glm47", "poolside_v1"],
  stopTokens: GLM_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
