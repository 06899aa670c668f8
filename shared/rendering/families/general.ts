/** A model of no known family: what its template says, and nothing else. */

import { type Family, PLAIN_FAMILY } from "./family.ts";

export const GENERAL: Family = {
  ...PLAIN_FAMILY,
  name: "general",
};
