/** Mistral: templates refuse call ids that are not nine letters or digits. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const MISTRAL: Family = {
  ...PLAIN_FAMILY,
  name: "mistral",
  callId: (call) => call.random(9),
};
