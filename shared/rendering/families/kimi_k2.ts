/** Kimi K2: the template writes call ids back, and the model counts them through the conversation. */

import type { Family } from "./family.ts";

export const KIMI_K2: Family = {
  name: "kimi_k2",
  closedBy: [],
  callId: (call) => `functions.${call.name}:${call.priorCalls}`,
};
