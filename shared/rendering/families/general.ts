/** A model of no known family: what its template says, and nothing else. */

import { type Family, plainCallId } from "./family.ts";

export const GENERAL: Family = { name: "general", closedBy: [], callId: plainCallId };
