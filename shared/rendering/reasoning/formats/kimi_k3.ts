/** Kimi K3: an element; the answer's beginning ends it, too. */

import { KIMI_K3_FRAMING } from "../../tool_calls/formats/kimi_k3.ts";
import { KIMI_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const KIMI_K3_THINK: ReasoningFormat = {
  names: ["kimi_k3"],
  framing: KIMI_K3_FRAMING,
  stopTokens: KIMI_STOPS,
  syntax: {
    type: "tags",
    starts: ["<|open|>think<|sep|>"],
    ends: ["<|close|>think<|sep|>"],
    closers: ["<|open|>response<|sep|>"],
  },
};
