/** MiniMax M3: `<mm:think>` ... `</mm:think>`. */

import { MINIMAX_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const MINIMAX_M3_THINK: ReasoningFormat = {
  names: ["minimax-m3"],
  stopTokens: MINIMAX_STOPS,
  syntax: { type: "tags", starts: ["<mm:think>"], ends: ["</mm:think>"] },
};
