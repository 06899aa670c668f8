/** Hunyuan: GLM's pairs within `<tool_calls>`. The markers may carry a suffix, `<tool_calls:opensource>`, all the same one. */

import type { MachineContext } from "../call_block.ts";
import { ElementReader } from "../element_machine.ts";
import type { ElementSyntax } from "../element_syntax.ts";
import { HUNYUAN_STOPS } from "../stop_tokens.ts";
import type { BlockReader, ToolCallFormat } from "../tool_call_format.ts";
import { GLM_ARGUMENT, GLM_CALL } from "./glm45.ts";

/** The suffix of the released models' tokens. */
const SUFFIX = ":opensource";

function syntaxOf(suffix: string): ElementSyntax {
  return {
    wrapper: { start: `<tool_calls${suffix}>`, end: `</tool_calls${suffix}>` },
    call: { ...GLM_CALL, open: `<tool_call${suffix}>` },
    callEnd: `</tool_call${suffix}>`,
    afterName: `<tool_sep${suffix}>`,
    argument: {
      ...GLM_ARGUMENT,
      open: `<arg_key${suffix}>`,
      close: `</arg_key${suffix}>`,
      then: `<arg_value${suffix}>`,
    },
    valueEnd: `</arg_value${suffix}>`,
  };
}

function readerOf(context: MachineContext): BlockReader {
  const plain = new ElementReader(context, syntaxOf(""));
  const suffixed = new ElementReader(context, syntaxOf(SUFFIX));
  return {
    starts: [...plain.starts, ...suffixed.starts],
    readBlock: (start) => (start.includes(SUFFIX) ? suffixed : plain).readBlock(start),
  };
}

export const HUNYUAN: ToolCallFormat = {
  names: ["hunyuan"],
  stopTokens: HUNYUAN_STOPS,
  machine: { type: "blocks", reader: readerOf },
};
