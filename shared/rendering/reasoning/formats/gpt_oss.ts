/** gpt-oss: messages of the analysis channel. */

import { HARMONY } from "../../tool_calls/formats/gpt_oss.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const GPT_OSS_ANALYSIS: ReasoningFormat = {
  names: ["gpt-oss"],
  stopTokens: [],
  syntax: { type: "channels", channels: HARMONY },
};
