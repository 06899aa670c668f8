/** MiniMax M3: a token before each tag; arguments are elements named like their keys, and so are members of objects. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import { MINIMAX_STOPS } from "../stop_tokens.ts";
import { typeElement } from "../nested_elements.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

/** Marks what follows as a tag. */
const TAG = "]<]minimax[>[";

const SYNTAX: ElementSyntax = {
  wrapper: { start: `${TAG}<tool_call>`, end: `${TAG}</tool_call>` },
  call: { open: `${TAG}<invoke name=`, stop: /[<>\n]/g, close: ">", attribute: "name" },
  callEnd: `${TAG}</invoke>`,
  argument: { open: `${TAG}<`, stop: /[<>\n]/g, close: ">", forbidden: /[\s/="']/ },
  valueStart: `${TAG}<{key}>`,
  valueEnd: `${TAG}</{key}>`,
  typeOne: (text, schema, property, sink) => typeElement(text, { tag: TAG, schema, property, sink }),
};

export const MINIMAX_M3: ToolCallFormat = {
  names: ["minimax-m3"],
  stopTokens: MINIMAX_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
