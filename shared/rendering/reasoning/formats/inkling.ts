/** Inkling: messages of the thinking type. */

import { INKLING_CHANNELS } from "../../tool_calls/formats/inkling.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const INKLING_THINKING: ReasoningFormat = {
  names: ["inkling"],
  stopTokens: [],
  syntax: { type: "channels", channels: INKLING_CHANNELS },
};
