/** Tasks and turns on the wire. */

import { verdictText } from "../../shared/core/judgement.ts";
import type { TaskRecord } from "../../shared/core/task.ts";
import type { Turn, TurnRecord } from "../../shared/core/turn.ts";
import { isMissing, type TurnExtras } from "../../shared/core/turn_extras.ts";
import type { JudgedTask } from "../../shared/services/exports/judged_task.ts";
import type { VisibleStatus } from "../../shared/services/tasks/task_service.ts";
import type { HandlerServices } from "../handler_services.ts";

/** What of a task its record tells. */
export function taskSummary(task: TaskRecord, status: VisibleStatus): Record<string, unknown> {
  return {
    task_id: task.taskId,
    status,
    group_id: task.settings.groupId,
    rollout_id: task.settings.rolloutId ?? task.taskId,
    parent_task_id: task.settings.parentTaskId,
    model: task.settings.model,
    history: task.settings.history,
    echo: task.settings.echo,
    turns: task.turns,
    tokens: { prompt: task.promptTokens, completion: task.completionTokens },
    created_at: iso(task.createdAtMs),
    expires_at: iso(task.expiresAtMs),
    closed_at: task.closedAtMs === null ? null : iso(task.closedAtMs),
    outcome: task.outcome,
    cause: task.cause,
    reward: task.reward,
    metadata: { ...task.settings.metadata, ...task.finishMetadata },
  };
}

/** A task with what its history says. Of a dropped or expired task only the record is left. */
export async function taskBody(task: TaskRecord, services: HandlerServices): Promise<Record<string, unknown>> {
  const status = services.tasks.statusOf(task);
  const summary = taskSummary(task, status);
  if (status === "dropped" || status === "expired") return { ...summary, capture: null, in_flight: 0 };
  const { judgement } = await services.exporter.judged(task);
  const captured = task.settings.capture;
  return {
    ...summary,
    capture: {
      valid: captured && judgement.capture.valid,
      reason: captured ? judgement.capture.reason : "not captured",
      provisional: !judgement.final,
    },
    notes: judgement.notes,
    in_flight: await services.closer.callsInFlight(task),
  };
}

/** One turn: its record, its place, and what became of its answer. */
export function turnBody(turn: Turn, judged: JudgedTask): Record<string, unknown> {
  const { record } = turn;
  const place = judged.judgement.turns[record.turn];
  const decision = place?.decision;
  return {
    turn: record.turn,
    parent: record.parent,
    relation: decision?.relation,
    related_to: decision?.relatedTo ?? null,
    echo: decision?.echo ?? null,
    role: place?.role,
    verdict: decision === undefined ? null : verdictText(decision.verdict),
    tools_changed: decision?.toolsChanged ?? false,
    finish_reason: record.finishReason,
    stop: record.finish.type === "stop" ? record.finish.matched : null,
    parse: record.parse,
    prompt_tokens: record.promptTokens,
    observation_tokens: record.observationTokens,
    completion_tokens: record.completionTokens,
    cached_tokens: record.cachedTokens,
    weight_versions: record.weightVersions,
    ...(record.extras === undefined ? {} : { extras: extraShapes(record.extras) }),
    resumed: record.resumed ?? 0,
    stale: judged.stale.has(record.turn),
    sampling: record.sampling,
    basis: record.basis,
    ignored_fields: record.ignoredFields,
    dialect: record.dialect,
    model: record.model,
    actor: record.actor,
    ...teacherPart(record),
    delivered: judged.delivered.get(record.turn) ?? null,
    adopted: place?.adopted ?? false,
    superseded: place?.superseded ?? false,
    replays: place?.replays ?? 0,
    reward: judged.task.perTurnRewards[String(record.turn)] ?? null,
    engine_ms: record.engineMs,
    wait_ms: record.waitMs,
    started_at: iso(record.startedAtMs),
    duration_ms: record.durationMs,
  };
}

/** What is known of the teacher's action, in a turn that it executed. */
function teacherPart({ teacher }: TurnRecord): Record<string, unknown> {
  if (teacher === undefined) return {};
  const { model, weightVersion: weight_version, droppedCalls: dropped_calls, leftOut: left_out } = teacher;
  return { teacher: { model, weight_version, dropped_calls, left_out } };
}

/** What was captured of a turn beside its tokens, or why it is missing; the bytes come with the results. */
function extraShapes(extras: TurnExtras): Record<string, unknown> {
  const { routed_experts: experts, top_p_ids: topPIds, spec_info: spec } = extras;
  return {
    ...(experts === undefined ? {} : {
      routed_experts: isMissing(experts)
        ? experts
        : { start: experts.start, rows: experts.rows, width: experts.width, bytes: experts.blob.bytes },
    }),
    ...(topPIds === undefined
      ? {}
      : { top_p_ids: isMissing(topPIds) ? topPIds : { ids: topPIds.ids, bytes: topPIds.blob.bytes } }),
    ...(spec === undefined ? {} : {
      spec_info: isMissing(spec) ? spec : {
        spec_accept_token_num: spec.acceptedTokens,
        spec_draft_token_num: spec.draftTokens,
        spec_verify_ct: spec.verifications,
      },
    }),
  };
}

function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
