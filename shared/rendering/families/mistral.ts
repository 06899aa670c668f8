/** Mistral: templates refuse call ids that are not nine letters or digits. */

import type { Family } from "./family.ts";

export const MISTRAL: Family = { name: "mistral", closedBy: [], callId: (call) => call.random(9) };
