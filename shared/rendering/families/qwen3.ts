/** Qwen3: ChatML, JSON calls in `<tool_call>`, reasoning in `<think>`. */

import { type Family, plainCallId } from "./family.ts";

export const QWEN3: Family = { name: "qwen3", closedBy: [], callId: plainCallId };
