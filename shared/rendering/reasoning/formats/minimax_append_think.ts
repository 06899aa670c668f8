/** MiniMax M2, thinking left in the answer. */

import { MINIMAX_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const MINIMAX_APPEND_THINK: ReasoningFormat = {
  names: ["minimax-append-think"],
  stopTokens: MINIMAX_STOPS,
  syntax: { type: "append", start: "<think>" },
};
