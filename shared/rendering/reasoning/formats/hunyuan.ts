/** Hunyuan: think tags, with the suffix of the released models' tokens or without. */

import { HUNYUAN_STOPS } from "../../tool_calls/stop_tokens.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const HUNYUAN_THINK: ReasoningFormat = {
  names: ["hunyuan"],
  stopTokens: HUNYUAN_STOPS,
  syntax: { type: "tags", starts: ["<think>", "<think:opensource>"], ends: ["</think>", "</think:opensource>"] },
};
