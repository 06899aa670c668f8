/** Refuses JSON nested so deeply that reading it by recursion would end the stack. It does not look at what it says. */

import { VerbatimError } from "../core/errors.ts";

/** Deeper than any schema or message, and far from where the stack ends. */
const MAX_DEPTH = 256;

/** Deeper values are `invalid_request`. Goes level by level: the cost is the number of lists and objects, not of bytes. */
export function assertShallow(value: unknown): void {
  let level: object[] = typeof value === "object" && value !== null ? [value] : [];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) {
      const reason = `nested more than ${MAX_DEPTH} levels deep`;
      throw new VerbatimError("invalid_request", `The body is ${reason}`, { details: { field: null, reason } });
    }
    const next: object[] = [];
    for (const container of level) {
      for (const inner of Array.isArray(container) ? container : Object.values(container)) {
        if (typeof inner === "object" && inner !== null) next.push(inner);
      }
    }
    level = next;
  }
}
