/** Mistral: `[THINK]` ... `[/THINK]`. */

import { SENTENCEPIECE_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const MISTRAL_THINK: ReasoningFormat = {
  names: ["mistral"],
  stopTokens: SENTENCEPIECE_STOPS,
  syntax: { type: "tags", starts: ["[THINK]"], ends: ["[/THINK]"] },
};
