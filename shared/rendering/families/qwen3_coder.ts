/** Qwen3-Coder and its successors: ChatML, calls as `<function=...>` elements in `<tool_call>`. */

import { type Family, plainCallId } from "./family.ts";

export const QWEN3_CODER: Family = { name: "qwen3_coder", closedBy: [], callId: plainCallId };
