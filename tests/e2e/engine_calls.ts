/** Counts what reaches the engine. */

import type { Harness } from "./harness.ts";

/** A counter of generate calls from now on: a rule that hits every request and changes nothing. */
export function countEngineCalls(harness: Harness): () => number {
  const { faults } = harness.development.engine;
  const rule = { fault: { kind: "meta" as const, drop: [] } };
  faults.add(rule);
  return () => faults.list().find((armed) => armed.rule === rule)?.hits ?? 0;
}
