/** Cohere Command A: thinking before text or actions; the text's beginning ends it, too. */

import { COHERE_FRAMING } from "../../tool_calls/formats/cohere_command4.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const COHERE_THINKING: ReasoningFormat = {
  names: ["cohere_command4"],
  framing: COHERE_FRAMING,
  stopTokens: ["<|END_OF_TURN_TOKEN|>"],
  syntax: {
    type: "tags",
    starts: ["<|START_THINKING|>"],
    ends: ["<|END_THINKING|>"],
    closers: ["<|START_TEXT|>", "<|START_RESPONSE|>"],
  },
};
