/** Gemma 4: a channel named `thought`. */

import { GEMMA_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const GEMMA4_THOUGHT: ReasoningFormat = {
  names: ["gemma4"],
  stopTokens: GEMMA_STOPS,
  syntax: { type: "tags", starts: ["<|channel>thought"], ends: ["<channel|>"] },
};
