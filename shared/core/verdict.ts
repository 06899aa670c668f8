/** The history policies: verdicts over the forest of a task, taken when it is finished and provisionally before. */

import { type Difference, differenceOfEcho, differenceOfUnits } from "./difference.ts";
import { isAccepted } from "./echo_grade.ts";
import type { Forest } from "./forest.ts";
import { type ForestEntry, type ForestNode, historyOf, prefixOf, servedBy } from "./forest_node.ts";
import { type Fate, type Hindsight, hindsight, type Step } from "./hindsight.ts";
import {
  type Decision,
  type Judgement,
  type TurnJudgement,
  type TurnRole,
  type Verdict,
  violationOf,
} from "./judgement.ts";
import type { StoredUnit } from "./turn_history.ts";

/** What decides a task's verdicts beside its requests. */
export interface PolicyOptions {
  /** The history policy. */
  readonly history: "append_only" | "branch";
  /** What counts as an echo. */
  readonly echo: "lenient" | "strict";
  /** Whether the task is finished. */
  readonly final: boolean;
  /** Whether the task names marks of its main line. */
  readonly hasSelector?: boolean;
}

/** Judges a task: main line, a role for every turn, a decision on every request, and whether the capture holds. */
export function judge(forest: Forest, options: PolicyOptions): Judgement {
  const { entries } = forest;
  const main = mainRoot(entries);
  const lenient = walk(entries, { main, echo: "lenient" });
  const strict = walk(entries, { main, echo: "strict" });
  const own = options.echo === "lenient" ? lenient : strict;
  const decisions = decide(forest, { main, lenient, strict });
  const mainLine = lineTo(forest, own.head, options.echo);
  return {
    final: options.final,
    capture: captureOf(decisions, options),
    mainLine,
    turns: turnsOf(forest, { decisions, mainLine, own, options }),
    decisions,
    notes: notesOf(forest, { main, mainLine, hasSelector: options.hasSelector === true }),
  };
}

/** The verdicts on the latest request when no later one is known: lenient and strict. */
export function verdictOnArrival(
  forest: Forest,
  entry: number,
): { readonly lenient: Verdict; readonly strict: Verdict } {
  const entries = forest.entries.slice(0, entry + 1);
  const main = mainRoot(entries);
  const verdict = (echo: "lenient" | "strict") =>
    verdictOf(forest, entries[entry]!, walk(entries, { main, echo }).fates.get(entry)).verdict;
  return { lenient: verdict("lenient"), strict: verdict("strict") };
}

/** The root of the main line: the first that bears the task's marks, else the first with tools, else the first that was appended to, else the first. */
function mainRoot(entries: readonly ForestEntry[]): string | null {
  const first = (holds: (entry: ForestEntry) => boolean) => {
    const roots = new Set(entries.filter(holds).map((entry) => entry.root));
    return entries.find((entry) => roots.has(entry.root))?.root ?? null;
  };
  return first((entry) => historyOf(entry).selected === true) ?? first((entry) => historyOf(entry).hasTools) ??
    first((entry) => isAccepted(historyOf(entry).follows?.echo ?? "missing", "lenient")) ?? entries[0]?.root ?? null;
}

/** The walk over the main root. Requests of other roots are on the side. */
function walk(
  entries: readonly ForestEntry[],
  options: { readonly main: string | null; readonly echo: "lenient" | "strict" },
): Hindsight {
  const turns = new Map<number, number>();
  const steps: Step[] = [];
  for (const entry of entries) {
    if (entry.kind === "turn") turns.set(entry.turn, entry.entry);
    if (entry.root !== options.main) continue;
    const { follows } = historyOf(entry);
    const from = follows === null ? undefined : turns.get(follows.turn);
    steps.push({
      entry: entry.entry,
      prompt: entry.node,
      follows: follows === null || from === undefined
        ? null
        : { entry: from, accepted: isAccepted(follows.echo, options.echo) },
      served: servedBy(entry)?.entry ?? null,
    });
  }
  return hindsight(steps);
}

interface Walks {
  readonly main: string | null;
  readonly lenient: Hindsight;
  readonly strict: Hindsight;
}

function decide(forest: Forest, walks: Walks): Decision[] {
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

function verdictOf(
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
  const received = unitAt(entry.node, shared);
  const expected = unitAt(series.node, shared);
  const reply = servedBy(series);
  const message = received === null ? history.entries : forest.messagesOf(history, shared + 1)[shared]!;
  const place = { unit: shared, received: received === null ? null : { ...received, message } };
  return {
    verdict: received === null ? { type: "shrank" } : { type: "rewritten", message },
    at: expected !== null
      ? differenceOfUnits(expected, { ...place, entries: history.entries })
      : reply === null || place.received === null
      ? null
      : differenceOfEcho(
        reply.history,
        received?.kind === "assistant" ? history.follows?.echo ?? null : "missing",
        { unit: shared, received: place.received },
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
    const received = unitAt(entry.node, unit);
    const message = forest.messagesOf(history, unit + 1)[unit];
    return {
      relation: echo === "missing" ? "branch" : "append",
      ...related(entry, turn),
      echo,
      also,
      reasoning,
      at: received === null || message === undefined
        ? null
        : differenceOfEcho(turn.history, echo, { unit, received: { ...received, message } }),
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
  const received = unitAt(entry.node, shared);
  const message = forest.messagesOf(history, shared + 1)[shared];
  return {
    ...none,
    relation: "fork",
    ...related(entry, forked),
    at: differenceOfUnits(unitAt(forked.node, shared), {
      unit: shared,
      received: received === null || message === undefined ? null : { ...received, message },
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
  for (let k = entry.entry - 1; k >= 0; k--) {
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

/** The unit at an index of a prompt, or null where the prompt is not that long. */
function unitAt(node: ForestNode, index: number): StoredUnit | null {
  return node.depth > index ? prefixOf(node, index + 1).unit : null;
}

/** The turns from the start of the series to its head, along accepted echoes. */
function lineTo(forest: Forest, head: number | null, echo: "lenient" | "strict"): number[] {
  const line: number[] = [];
  for (let turn = head === null ? null : servedBy(forest.entries[head]!); turn !== null;) {
    line.push(turn.turn);
    const { follows } = turn.history;
    turn = follows !== null && isAccepted(follows.echo, echo) ? forest.turn(follows.turn) : null;
  }
  return line.reverse();
}

function captureOf(decisions: readonly Decision[], options: PolicyOptions): Judgement["capture"] {
  if (options.history === "branch") return { valid: true, reason: null };
  for (const decision of decisions) {
    if (decision.kind === "failed") continue;
    const reason = violationOf(options.echo === "lenient" ? decision.verdict : decision.strictVerdict);
    if (reason !== null) return { valid: false, reason };
  }
  return { valid: true, reason: null };
}

function turnsOf(
  forest: Forest,
  judged: {
    readonly decisions: readonly Decision[];
    readonly mainLine: readonly number[];
    readonly own: Hindsight;
    readonly options: PolicyOptions;
  },
): TurnJudgement[] {
  const adopted = new Set<number>();
  const replays = new Map<number, number>();
  for (const entry of forest.entries) {
    if (entry.kind === "replay") replays.set(entry.answers.turn, (replays.get(entry.answers.turn) ?? 0) + 1);
    for (const link of [historyOf(entry).related, historyOf(entry).follows]) {
      if (link !== null && link.echo !== "missing") adopted.add(link.turn);
    }
  }
  const main = new Set(judged.mainLine);
  /** Prompts of which one sample was echoed. */
  const settled = new Set<string>();
  const sampleKey = new Map<ForestNode, number>();
  const keyOf = (node: ForestNode, root: string) => {
    const number = sampleKey.get(node) ?? sampleKey.size;
    sampleKey.set(node, number);
    return `${number}.${root}`;
  };
  for (const turn of adopted) settled.add(keyOf(forest.turn(turn).node, forest.turn(turn).root));
  return forest.entries.flatMap((entry): TurnJudgement[] => {
    if (entry.kind !== "turn") return [];
    const { turn } = entry;
    const superseded = !adopted.has(turn) && !main.has(turn) && settled.has(keyOf(entry.node, entry.root));
    const role: TurnRole = main.has(turn)
      ? "main"
      : superseded
      ? "superseded"
      : isSide(judged.own.fates.get(entry.entry), judged.options)
      ? "side"
      : "branch";
    return [{
      turn,
      role,
      decision: judged.decisions[entry.entry]!,
      adopted: adopted.has(turn),
      superseded,
      replays: replays.get(turn) ?? 0,
    }];
  });
}

/** Under `branch` a conversation that was left is a branch; a single call that nothing was built on is a side call. */
function isSide(fate: Fate | undefined, options: PolicyOptions): boolean {
  if (fate === undefined) return true;
  return fate.type === "side" && (options.history === "append_only" || fate.single);
}

function notesOf(
  forest: Forest,
  judged: { readonly main: string | null; readonly mainLine: readonly number[]; readonly hasSelector: boolean },
): string[] {
  const notes: string[] = [];
  const last = judged.mainLine.at(-1);
  if (last !== undefined && isTakenUpElsewhere(forest, judged.main, last)) {
    notes.push("conversation_continued_elsewhere");
  }
  if (judged.hasSelector && !forest.entries.some((entry) => historyOf(entry).selected === true)) {
    notes.push("main_selector_matched_nothing");
  }
  return notes;
}

/** Whether another root, after the last turn of the main line, goes on from its whole history (system text aside). */
function isTakenUpElsewhere(forest: Forest, main: string | null, last: number): boolean {
  const { entry, node } = forest.turn(last);
  const history = withoutLeadingSystem(node);
  return history.length > 0 && forest.entries.slice(entry + 1).some((later) => {
    if (later.root === main) return false;
    const other = withoutLeadingSystem(later.node);
    return other.length > history.length && history.every((hash, k) => hash === other[k]);
  });
}

function withoutLeadingSystem(node: ForestNode): string[] {
  const units: StoredUnit[] = [];
  for (let at: ForestNode = node; at.unit !== null && at.parent !== null; at = at.parent) units.push(at.unit);
  units.reverse();
  const start = units.findIndex((unit) => unit.kind !== "system");
  return start < 0 ? [] : units.slice(start).map((unit) => unit.hash);
}
