/** What each turn is to its task: on the main line, a branch, a side call, or superseded by another sample. */

import type { Forest } from "./forest.ts";
import { type ForestNode, historyOf } from "./forest_node.ts";
import type { Fate, Hindsight } from "./hindsight.ts";
import type { Decision, TurnJudgement, TurnRole } from "./judgement.ts";

/** The role of every turn, by number. */
export function turnRoles(
  forest: Forest,
  judged: {
    readonly decisions: readonly Decision[];
    readonly mainLine: readonly number[];
    readonly own: Hindsight;
    readonly history: "append_only" | "branch";
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
  /** Prompts of which one sample was echoed, by what else is rendered. */
  const settled = new Map<ForestNode, Set<string>>();
  for (const turn of adopted) {
    const { node, root } = forest.turn(turn);
    settled.set(node, (settled.get(node) ?? new Set()).add(root));
  }
  return forest.entries.flatMap((entry): TurnJudgement[] => {
    if (entry.kind !== "turn") return [];
    const { turn } = entry;
    const superseded = !adopted.has(turn) && !main.has(turn) && settled.get(entry.node)?.has(entry.root) === true;
    const role: TurnRole = main.has(turn)
      ? "main"
      : superseded
      ? "superseded"
      : isSide(judged.own.fates.get(entry.entry), judged.history)
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
function isSide(fate: Fate | undefined, history: "append_only" | "branch"): boolean {
  if (fate === undefined) return true;
  return fate.type === "side" && (history === "append_only" || fate.single);
}
