/** The main line as one prompt plus one completion region: the seed system's sample. */

import { leaves } from "../../core/leaves.ts";
import { InconsistentSeries, tryPackPath } from "../../core/packed_path.ts";
import { ceFields, exportHead, pathNotes, spanShape, trainableMask, versionShape } from "./export_shapes.ts";
import type { JudgedTask } from "./judged_task.ts";
import { extraFields, extraNotes, type FoundExtras, pathExtras } from "../extras/path_extras.ts";
import { type FoundScores, pathScores, scoreFields } from "../teacher/kept_scores.ts";

/** What every export begins with, why there is no region, and the region. */
export interface RegionExport extends Record<string, unknown> {
  readonly reason: string | null;
}

/** The region, or null with the reason. Three arrays of one length; observed tokens have mask 0 and logprob 0.0. */
export function exportRegion(
  judged: JudgedTask,
  { scores, extras: found }: { readonly scores: FoundScores; readonly extras: FoundExtras },
): RegionExport {
  const { judgement, forest } = judged;
  const rows = leaves(forest, judgement);
  const last = judgement.mainLine.at(-1);
  const without = (reason: string | null) => ({
    ...exportHead(judged, reason, judgement.notes),
    reason,
    result: null,
    other_rows: rows.length,
  });
  const reason = reasonAgainst(judged);
  if (reason !== null || last === undefined) return without(reason);
  const path = tryPackPath(forest.path(last).map((turn) => judged.turns[turn]!));
  if (path instanceof InconsistentSeries) return without(path.reason);
  const lossMask = trainableMask(path, judged);
  const extras = pathExtras(path, found);
  const notes = [...judgement.notes, ...pathNotes([path], judged), ...scores.notes, ...extraNotes([extras])];
  return {
    ...exportHead(judged, null, notes),
    reason: null,
    result: {
      prompt_token_ids: Array.from(path.prompt),
      completion_token_ids: Array.from(path.response),
      logprobs: Array.from(path.logprobs),
      loss_mask: Array.from(lossMask),
      ...ceFields(judged.task, path.teacherMask),
      ...scoreFields(pathScores(path, scores.kept, lossMask)),
      ...extraFields(extras),
      weight_versions: versionShape(path.weightVersions),
      finish_reason: path.spans.at(-1)?.turn.record.finishReason,
      turns: path.spans.map((span) => spanShape(span, judged)),
    },
    other_rows: Math.max(0, rows.length - 1),
  };
}

/** Why there is no sample, or null. */
export function reasonAgainst(judged: JudgedTask): string | null {
  const { task, judgement, forest } = judged;
  if (!task.settings.capture) return "not captured";
  if (!judgement.capture.valid) return judgement.capture.reason;
  if (judgement.mainLine.length === 0) return "nothing was generated";
  if (task.settings.history !== "branch") return null;
  const main = forest.turn(judgement.mainLine[0]!).root;
  const ends = leaves(forest, judgement).filter((leaf) => forest.turn(leaf.turn).root === main);
  return ends.length > 1 ? `the main root has ${ends.length} leaves` : null;
}
