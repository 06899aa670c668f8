/** Kimi K3: elements opened by `<|open|>`, closed by `<|close|>`; the answer is an element, too. */

import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import { KIMI_STOPS } from "../stop_tokens.ts";
import type { ToolCallFormat } from "../tool_call_format.ts";

/** What frames the answer and the whole message. */
export const KIMI_K3_FRAMING: readonly string[] = [
  "<|open|>response<|sep|>",
  "<|close|>response<|sep|>",
  "<|open|>message<|sep|>",
  "<|close|>message<|sep|>",
];

const SYNTAX: ElementSyntax = {
  wrapper: { start: "<|open|>tools<|sep|>", end: "<|close|>tools<|sep|>" },
  call: { open: "<|open|>call ", stop: /[<\n]/g, close: "<|sep|>", attribute: "tool" },
  callEnd: "<|close|>call<|sep|>",
  argument: { open: "<|open|>argument ", stop: /[<\n]/g, close: "<|sep|>", attribute: "key" },
  valueEnd: "<|close|>argument<|sep|>",
};

export const KIMI_K3: ToolCallFormat = {
  names: ["kimi_k3"],
  framing: KIMI_K3_FRAMING,
  stopTokens: KIMI_STOPS,
  machine: { type: "blocks", reader: (context) => new ElementReader(context, SYNTAX) },
};
