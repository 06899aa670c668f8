/** How many weights a path spans, and which of its turns came too late. It knows no exports. */

import type { TurnRecord } from "./turn.ts";

/**
 * The turns beyond a limit of weight versions: those in whose series, from the first turn of their path on, more than
 * `limit` distinct versions have sampled by the end of the turn. By number; none where there is no limit. A teacher's turns
 * have no such weights, and are not among them.
 */
export function turnsBeyondSpan(
  records: readonly Pick<TurnRecord, "actor" | "parent" | "weightVersions">[],
  limit: number | null,
): ReadonlySet<number> {
  const beyond = new Set<number>();
  if (limit === null) return beyond;
  const seen: ReadonlySet<string | null>[] = [];
  records.forEach(({ actor, parent, weightVersions }, turn) => {
    const before = parent === null ? new Set<string | null>() : seen[parent]!;
    const added = weightVersions.filter(({ version }) => !before.has(version));
    seen.push(added.length === 0 ? before : new Set([...before, ...added.map(({ version }) => version)]));
    if (actor === "policy" && seen[turn]!.size > limit) beyond.add(turn);
  });
  return beyond;
}
