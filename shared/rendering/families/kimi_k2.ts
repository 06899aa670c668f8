/** Kimi K2: the template writes call ids back, and the model counts them through the conversation. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const KIMI_K2: Family = {
  ...PLAIN_FAMILY,
  name: "kimi_k2",
  callId: (call) => `functions.${call.name}:${call.priorCalls}`,
};
