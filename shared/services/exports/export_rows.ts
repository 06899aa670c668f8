/** Every leaf as a row: no sampled token is lost, and none is trained twice. */

import { type Leaf, leaves } from "../../core/leaves.ts";
import type { TurnRole } from "../../core/judgement.ts";
import { InconsistentSeries, type PackedPath, tryPackPath } from "../../core/packed_path.ts";
import type { Tokenizer } from "../../ports/tokenizer.ts";
import { ceFields, exportHead, pathNotes, rolloutId, spanShape, versionShape } from "./export_shapes.ts";
import type { JudgedTask } from "./judged_task.ts";
import { extraFields, extraNotes, type FoundExtras, type PathExtras, pathExtras } from "../extras/path_extras.ts";
import { type FoundScores, pathScores, scoreFields } from "../teacher/kept_scores.ts";

/** Which rows are wanted. */
export interface RowFilter {
  /** Roles of rows; all where absent. */
  readonly roles?: readonly TurnRole[] | undefined;
  /** Most weight versions a row may span: others are left out. The task's own limit masks turns instead. */
  readonly maxVersionSpan?: number | undefined;
}

/** One leaf's path, and what of it trains. */
export interface PackedRow {
  readonly leaf: Leaf;
  readonly path: PackedPath;
  /** 1 where a token trains in this row. */
  readonly lossMask: Uint8Array;
  /** 1 where a token of the teacher's trains in this row, by cross entropy. */
  readonly ceMask: Uint8Array;
}

/** Rows, the main line first; why there are none, or null; what their reader should know. */
export interface PackedRows {
  readonly rows: readonly PackedRow[];
  readonly reason: string | null;
  readonly notes: readonly string[];
}

/** Packs the rows that the filter lets through. An invalid capture has none, nor has a task of which any of them is inconsistent. */
export function packRows(judged: JudgedTask, filter: RowFilter): PackedRows {
  const { task, judgement, forest } = judged;
  const reason = !task.settings.capture ? "not captured" : judgement.capture.valid ? null : judgement.capture.reason;
  if (reason !== null) return { rows: [], reason, notes: judgement.notes };
  const span = filter.maxVersionSpan ?? Infinity;
  const all = leaves(forest, judgement);
  const wanted = all.filter((leaf) => filter.roles?.includes(leaf.role) ?? true);
  const packed: { readonly leaf: Leaf; readonly path: PackedPath }[] = [];
  for (const leaf of wanted) {
    const path = tryPackPath(leaf.path.map((turn) => judged.turns[turn]!));
    if (path instanceof InconsistentSeries) return { rows: [], reason: path.reason, notes: judgement.notes };
    packed.push({ leaf, path });
  }
  const within = packed.filter(({ path }) => versionsOf(path) <= span);
  const owned = new Set<number>();
  const rows = within.map(({ leaf, path }) => {
    const trains = task.settings.trainRoles.includes(leaf.role);
    return { leaf, path, ...trainingMasks(path, judged, trains ? owned : null) };
  });
  const notes = [
    ...judgement.notes,
    ...pathNotes(within.map(({ path }) => path), judged),
    ...(within.length < packed.length ? ["rows_over_max_version_span"] : []),
  ];
  const found = wanted.length === 0 ? "no row is of these roles" : "no row is within max_version_span";
  const nothing = all.length === 0 ? "nothing was generated" : found;
  return { rows, reason: rows.length === 0 ? nothing : null, notes };
}

/** What rows carry beside their tokens. */
export interface RowParts {
  readonly tokenizer: Tokenizer;
  readonly scores: FoundScores;
  readonly extras: FoundExtras;
}

/** Rows on the wire. */
export function exportRows(judged: JudgedTask, filter: RowFilter, parts: RowParts): Record<string, unknown> {
  const packed = packRows(judged, filter);
  const extras = packed.rows.map(({ path }) => pathExtras(path, parts.extras));
  const rows = packed.rows.map((row, k) => rowShape(judged, row, { ...parts, extras: extras[k]! }));
  const trainedTokens = rows.reduce((sum, row) => sum + row.trained_tokens, 0);
  return {
    ...exportHead(judged, packed.reason, [...packed.notes, ...parts.scores.notes, ...extraNotes(extras)]),
    rows: rows.map((row) => ({ ...row, rows_in_rollout: rows.length, trained_tokens_in_rollout: trainedTokens })),
  };
}

/** What trains in this row: actions in time that no row before owns, those of the policy apart from the teacher's. Null `owned`: none. */
function trainingMasks(
  path: PackedPath,
  judged: JudgedTask,
  owned: Set<number> | null,
): Pick<PackedRow, "lossMask" | "ceMask"> {
  const lossMask = new Uint8Array(path.response.length);
  const ceMask = new Uint8Array(path.response.length);
  if (owned === null) return { lossMask, ceMask };
  for (const { turn: { record }, start, end } of path.spans) {
    if (owned.has(record.turn) || judged.stale.has(record.turn)) continue;
    owned.add(record.turn);
    (record.actor === "teacher" ? ceMask : lossMask).fill(1, start, end);
  }
  return { lossMask, ceMask };
}

function rowShape(
  judged: JudgedTask,
  row: PackedRow,
  { tokenizer, scores, extras }: Omit<RowParts, "extras"> & { readonly extras: PathExtras | null },
): Record<string, unknown> & { trained_tokens: number } {
  const { leaf, path, lossMask, ceMask } = row;
  return {
    tokens: [...path.prompt, ...path.response],
    prompt_length: path.prompt.length,
    response_length: path.response.length,
    sampled_mask: Array.from(path.sampledMask),
    loss_mask: Array.from(lossMask),
    ...ceFields(judged.task, ceMask),
    logprobs: Array.from(path.logprobs),
    ...scoreFields(pathScores(path, scores.kept, lossMask)),
    ...extraFields(extras),
    weight_versions: versionShape(path.weightVersions),
    role: leaf.role,
    path: leaf.path,
    turns: path.spans.map((span) => spanShape(span, judged)),
    truncated: isTruncated(judged, path),
    response: tokenizer.decode(path.response),
    rollout_id: rolloutId(judged.task),
    trained_tokens: lossMask.reduce((sum, bit) => sum + bit, 0),
  };
}

/** Whether the row ends where a limit was, or the outcome says so. */
export function isTruncated(judged: JudgedTask, path: PackedPath): boolean {
  return path.spans.at(-1)?.turn.record.finish.type === "length" || judged.task.outcome === "truncated";
}

function versionsOf(path: PackedPath): number {
  return new Set(path.weightVersions.map((segment) => segment.version)).size;
}
