/** The history policies: verdicts over the forest of a task, taken when it is finished and provisionally before. */

import { decide, verdictOf } from "./decide.ts";
import { isAccepted } from "./echo_grade.ts";
import type { Forest } from "./forest.ts";
import { type ForestEntry, type ForestNode, historyOf, servedBy } from "./forest_node.ts";
import { type Hindsight, hindsight, type Step } from "./hindsight.ts";
import { type Decision, type Judgement, type Verdict, violationOf } from "./judgement.ts";
import { turnRoles } from "./turn_roles.ts";
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
    turns: turnRoles(forest, { decisions, mainLine, own, history: options.history }),
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

/**
 * The root of the main line: the first that bears the task's marks, else the first with tools, else the first that was
 * appended to, else the first. Of each kind one that was served comes before one whose requests all failed: an agent that
 * begins anew after a failure, with the time in its first message, has one main line.
 */
function mainRoot(entries: readonly ForestEntry[]): string | null {
  const served = new Set(entries.filter((entry) => servedBy(entry) !== null).map((entry) => entry.root));
  const first = (holds: (entry: ForestEntry) => boolean) => {
    const roots = new Set(entries.filter(holds).map((entry) => entry.root));
    const found = entries.filter((entry) => roots.has(entry.root));
    return (found.find((entry) => served.has(entry.root)) ?? found[0])?.root ?? null;
  };
  return first((entry) => historyOf(entry).selected === true) ?? first((entry) => historyOf(entry).hasTools) ??
    first((entry) => isAccepted(historyOf(entry).follows?.echo ?? "missing", "lenient")) ?? first(() => true);
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

/** The turns up to the head: along the series extended, and along the accepted echo where a prompt was rendered whole again. */
function lineTo(forest: Forest, head: number | null, echo: "lenient" | "strict"): number[] {
  const line: number[] = [];
  for (let turn = head === null ? null : servedBy(forest.entries[head]!); turn !== null;) {
    line.push(turn.turn);
    const { follows } = turn.history;
    const echoed = follows !== null && isAccepted(follows.echo, echo) ? follows.turn : null;
    const before: number | null = turn.parent ?? echoed;
    turn = before === null ? null : forest.turn(before);
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

function notesOf(
  forest: Forest,
  judged: { readonly main: string | null; readonly mainLine: readonly number[]; readonly hasSelector: boolean },
): string[] {
  const notes: string[] = [];
  const last = judged.mainLine.at(-1);
  if (last !== undefined) {
    if (isTakenUpElsewhere(forest, judged.main, last)) notes.push("conversation_continued_elsewhere");
    else if (anotherRootWentOn(forest, judged.main, last)) notes.push("another_root_went_on");
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

/**
 * Whether, after the last turn of the main line, another root with the same tools did an agent's work: it offers tools,
 * or was appended to. A history that was begun anew (a rewritten first message) looks like that, and so may a sub-agent.
 */
function anotherRootWentOn(forest: Forest, main: string | null, last: number): boolean {
  const { entry, history } = forest.turn(last);
  return forest.entries.slice(entry + 1).some((later) => {
    if (later.kind !== "turn" || later.root === main || later.history.toolsDigest !== history.toolsDigest) return false;
    return later.history.hasTools || isAccepted(later.history.follows?.echo ?? "missing", "lenient");
  });
}

function withoutLeadingSystem(node: ForestNode): string[] {
  const units: StoredUnit[] = [];
  for (let at: ForestNode = node; at.unit !== null && at.parent !== null; at = at.parent) units.push(at.unit);
  units.reverse();
  const start = units.findIndex((unit) => unit.kind !== "system");
  return start < 0 ? [] : units.slice(start).map((unit) => unit.hash);
}
