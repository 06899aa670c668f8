/** Exports on the wire: names and shapes of the HTTP contract. */

import type { PackedPath, TurnSpan } from "../../core/packed_path.ts";
import type { VersionSegment } from "../../core/turn.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { JudgedTask } from "./judged_task.ts";

/** What every export begins with. */
export function exportHead(
  judged: JudgedTask,
  reason: string | null,
  notes: readonly string[],
): Record<string, unknown> {
  const { task } = judged;
  return {
    task_id: task.taskId,
    group_id: task.settings.groupId,
    rollout_id: rolloutId(task),
    status: task.status,
    outcome: task.outcome,
    cause: task.cause,
    reward: task.reward,
    metadata: { ...task.settings.metadata, ...task.finishMetadata },
    reason,
    notes,
  };
}

/** The rollout of a task: as given, else the task itself is one. */
export function rolloutId(task: TaskRecord): string | number {
  return task.settings.rolloutId ?? task.taskId;
}

/** A turn's action within a region or row. */
export function spanShape(span: TurnSpan, judged: JudgedTask): Record<string, unknown> {
  const { record } = span.turn;
  return {
    turn: record.turn,
    start: span.start,
    end: span.end,
    finish_reason: record.finishReason,
    stop: record.finish.type === "stop" ? record.finish.matched : null,
    parse: record.parse,
    basis: record.basis,
    actor: record.actor,
    role: judged.judgement.turns[record.turn]?.role,
    cached_tokens: record.cachedTokens,
    ...(judged.stale.has(record.turn) ? { masked: "version_span" } : {}),
    reward: judged.task.perTurnRewards[String(record.turn)] ?? null,
  };
}

/** The mask of what trains by cross entropy, where a task has turns of the teacher's: nowhere both it and the loss mask are 1. */
export function ceFields(task: TaskRecord, ceMask: Uint8Array): { readonly ce_mask?: number[] } {
  return task.settings.rollin === undefined ? {} : { ce_mask: Array.from(ceMask) };
}

/** 1 where a sampled token may train: not where its turn is beyond the versions that the task may span. */
export function trainableMask(path: PackedPath, judged: JudgedTask): Uint8Array {
  const mask = path.sampledMask.slice();
  for (const { turn, start, end } of path.spans) if (judged.stale.has(turn.record.turn)) mask.fill(0, start, end);
  return mask;
}

/** Which weights sampled which positions. */
export function versionShape(segments: readonly VersionSegment[]): unknown[] {
  return segments.map(({ version, start, end, exact }) => ({ version, start, end, exact }));
}

/** What a reader of these paths should know beside the judgement's notes. */
export function pathNotes(paths: readonly PackedPath[], judged: JudgedTask): string[] {
  const turns = paths.flatMap((path) => path.spans.map((span) => span.turn.record));
  const sampled = turns.filter((record) => record.actor === "policy");
  const bases = new Set(sampled.map((record) => JSON.stringify(record.basis)));
  const versions = new Set(turns.flatMap((record) => record.weightVersions.map((segment) => segment.version)));
  return [
    ...(bases.size > 1 ? ["mixed_basis"] : []),
    ...(versions.size > 1 ? ["mixed_versions"] : []),
    ...(turns.some((record) => judged.stale.has(record.turn)) ? ["turns_over_max_version_span"] : []),
    ...(turns.some((record) => record.rewriteOf !== undefined) ? ["template_rewrite"] : []),
  ];
}
