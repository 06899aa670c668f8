/** Muse: messages to itself. */

import { MUSE_CHANNELS } from "../../tool_calls/formats/muse.ts";
import type { ReasoningFormat } from "../reasoning_format.ts";

export const MUSE_SELF: ReasoningFormat = {
  names: ["muse"],
  stopTokens: [],
  syntax: { type: "channels", channels: MUSE_CHANNELS },
};
