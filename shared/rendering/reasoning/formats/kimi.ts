/** Kimi before K2: think tags of its own. */

import { KIMI_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const KIMI: ReasoningFormat = {
  names: ["kimi"],
  stopTokens: KIMI_STOPS,
  syntax: { type: "tags", starts: ["◁think▷"], ends: ["◁/think▷"] },
};
