/** From what became of each request to the decision on it: relation, grade, verdict, and where it differs. */

import { type Difference, differenceOfEcho, differenceOfUnits } from "./difference.ts";
import type { Forest } from "./forest.ts";
import { type ForestEntry, type ForestNode, historyOf, prefixOf, servedBy } from "./forest_node.ts";
import type { Fate, Hindsight } from "./hindsight.ts";
import type { Decision, Verdict } from "./judgement.ts";
import type { StoredUnit } from "./turn_history.ts";

/** The main root, and the walks over it under both readings of an echo. */
export interface Walks {
  /** The main root's key. */
  readonly main: string | null;
  /** Whatever stands in a reply's place is its echo. */
  readonly lenient: Hindsight;
  /** Only what says the same is. */
  readonly strict: Hindsight;
}

/** The decision on every request. */
export function decide(forest: Forest, walks: Walks): Decision[] {
  let requests = 0;
  return forest.entries.map((entry) => {
    const lenient = verdictOf(forest, entry, walks.lenient.fates.get(entry.entry));
    const strict = verdictOf(forest, entry, walks.strict.fates.get(entry.entry));
    const relation = relationOf(forest, entry, walks);
    return {
      entry: entry.entry,
      request: entry.kind === "failed" ? null : requests++,
      turn: servedBy(entry)?.turn ?? null,
      kind: entry.kind,
      ...relation,
      at: lenient.at ?? strict.at ?? relation.at,
      verdict: lenient.verdict,
      strictVerdict: strict.verdict,
    };
  });
}

/** The verdict that a fate comes to, and where the request left the series if it did. No fate: the request is of another root. */
export function verdictOf(
  forest: Forest,
  entry: ForestEntry,
  fate: Fate | undefined,
): { readonly verdict: Verdict; readonly at: Difference | null } {
  switch (fate?.type) {
    case undefined:
      return { verdict: { type: "side" }, at: null };
    case "left":
      return violation(forest, entry, forest.entries[fate.from]!);
    default:
      return { verdict: { type: fate!.type }, at: null };
  }
}

/** Where a request leaves a series: the prompt of the series' latest request, and the reply to it. */
function violation(
  forest: Forest,
  entry: ForestEntry,
  series: ForestEntry,
): { readonly verdict: Verdict; readonly at: Difference | null } {
  const history = historyOf(entry);
  const shared = commonDepth(entry.node, series.node);
  const received = receivedAt(forest, entry, shared);
  const expected = unitAt(series.node, shared);
  const reply = servedBy(series);
  return {
    verdict: received === null ? { type: "shrank" } : { type: "rewritten", message: received.message },
    at: expected !== null
      ? differenceOfUnits(expected, { unit: shared, received, entries: history.entries })
      : reply === null || received === null
      ? null
      : differenceOfEcho(
        reply.history,
        received.kind === "assistant" ? history.follows?.echo ?? null : "missing",
        { unit: shared, received },
      ),
  };
}

type RelationPart = Pick<
  Decision,
  "relation" | "relatedEntry" | "relatedTo" | "echo" | "also" | "reasoning" | "toolsChanged" | "at"
>;

function relationOf(forest: Forest, entry: ForestEntry, walks: Walks): RelationPart {
  const history = historyOf(entry);
  const none = { echo: null, also: [], reasoning: null, at: null };
  if (entry.repeats !== null) {
    const repeated = forest.entries[entry.repeats]!;
    return { ...none, relation: "retry", ...related(entry, repeated) };
  }
  if (history.related !== null) {
    const { echo, also, reasoning } = history.related;
    const turn = forest.turn(history.related.turn);
    const unit = turn.history.open === null || echo === "missing" ? turn.node.depth : turn.node.depth - 1;
    const isAlike = echo === "exact" || echo === "representation";
    const received = isAlike ? null : receivedAt(forest, entry, unit);
    return {
      relation: echo === "missing" ? "branch" : "append",
      ...related(entry, turn),
      echo,
      also,
      reasoning,
      at: received === null ? null : differenceOfEcho(turn.history, echo, { unit, received }),
    };
  }
  const forked = forkedFrom(forest, entry, walks);
  if (forked === null) {
    const isFirst = entry.root === walks.main;
    return {
      ...none,
      relation: isFirst ? "root" : "side_root",
      relatedEntry: null,
      relatedTo: null,
      toolsChanged: false,
    };
  }
  const shared = commonDepth(entry.node, forked.node);
  return {
    ...none,
    relation: "fork",
    ...related(entry, forked),
    at: differenceOfUnits(unitAt(forked.node, shared), {
      unit: shared,
      received: receivedAt(forest, entry, shared),
      entries: history.entries,
    }),
  };
}

function related(
  entry: ForestEntry,
  other: ForestEntry,
): Pick<Decision, "relatedEntry" | "relatedTo" | "toolsChanged"> {
  return {
    relatedEntry: other.entry,
    relatedTo: servedBy(other)?.turn ?? null,
    toolsChanged: historyOf(other).toolsDigest !== historyOf(entry).toolsDigest,
  };
}

/** The latest earlier request with a reply, side calls aside, that shares most leading units; null where none shares any. */
function forkedFrom(forest: Forest, entry: ForestEntry, walks: Walks): ForestEntry | null {
  let best: ForestEntry | null = null;
  let most = 0;
  const possible = historyOf(entry).shared?.units ?? 0;
  for (let k = entry.entry - 1; k >= 0 && most < possible; k--) {
    const other = forest.entries[k]!;
    const fate = walks.lenient.fates.get(k)?.type ?? "side";
    if (other.kind === "failed" || fate === "side") continue;
    const shared = commonDepth(entry.node, other.node);
    if (shared > most) [best, most] = [other, shared];
  }
  return best;
}

function commonDepth(one: ForestNode, other: ForestNode): number {
  let depth = Math.min(one.depth, other.depth);
  let [a, b] = [prefixOf(one, depth), prefixOf(other, depth)];
  while (a !== b) [a, b, depth] = [a.parent!, b.parent!, depth - 1];
  return depth;
}

/** The unit at an index of an entry's prompt, with the place it has in that request; null where the prompt is not that long. */
function receivedAt(forest: Forest, entry: ForestEntry, index: number): StoredUnit | null {
  const unit = unitAt(entry.node, index);
  if (unit === null) return null;
  const message = forest.messagesOf(historyOf(entry), index + 1)[index];
  return { ...unit, message: message ?? unit.message };
}

/** The unit at an index of a prompt, or null where the prompt is not that long. */
function unitAt(node: ForestNode, index: number): StoredUnit | null {
  return node.depth > index ? prefixOf(node, index + 1).unit : null;
}
