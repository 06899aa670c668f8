/** The trained rows as slime's samples: the dictionaries that its `Sample.from_dict` reads. It knows no other trainer. */

import type { PackedPath } from "../core/packed_path.ts";
import type { Tokenizer } from "../ports/tokenizer.ts";
import { isTruncated, type PackedRow, packRows, type RowFilter } from "./export_rows.ts";
import { exportHead, rolloutId } from "./export_shapes.ts";
import type { JudgedTask } from "./judged_task.ts";
import { type FoundScores, pathScores } from "./kept_scores.ts";

/** Samples on the wire, one for each row that trains; all have one `rollout_id`. */
export function exportSlime(
  judged: JudgedTask,
  filter: RowFilter,
  parts: { readonly tokenizer: Tokenizer; readonly scores: FoundScores },
): Record<string, unknown> {
  const packed = packRows(judged, filter);
  const trained = packed.rows.filter(({ lossMask }) => lossMask.includes(1));
  const reason = packed.reason ?? (trained.length === 0 ? "nothing trains" : null);
  return {
    ...exportHead(judged, reason, [...packed.notes, ...parts.scores.notes]),
    samples: trained.map((row) => sampleShape(judged, row, parts)),
  };
}

function sampleShape(
  judged: JudgedTask,
  { leaf, path, lossMask }: PackedRow,
  { tokenizer, scores }: { readonly tokenizer: Tokenizer; readonly scores: FoundScores },
): Record<string, unknown> {
  const { task } = judged;
  const { settings } = task;
  const teacher = pathScores(path, scores.kept, lossMask);
  const metadata = { ...settings.metadata, ...task.finishMetadata };
  return {
    group_index: null,
    index: null,
    rollout_id: rolloutId(task),
    prompt: tokenizer.decode(path.prompt),
    tokens: [...path.prompt, ...path.response],
    multimodal_inputs: null,
    multimodal_train_inputs: null,
    multimodal_train_input_id: null,
    apply_chat_template_kwargs: null,
    response: tokenizer.decode(path.response),
    response_length: path.response.length,
    label: typeof metadata.label === "string" ? metadata.label : null,
    reward: task.reward,
    loss_mask: Array.from(lossMask),
    weight_versions: path.weightVersions.flatMap(({ version }) => version === null ? [] : [version]),
    rollout_log_probs: Array.from(path.logprobs),
    rollout_top_p_token_ids: null,
    rollout_top_p_token_offsets: null,
    rollout_routed_experts: null,
    remove_sample: false,
    // slime makes tensors of these: positions that are no sampled token hold 0.0 under the loss mask, as logprobs do.
    teacher_log_probs: teacher === null ? null : teacher.teacher_log_probs.filled(),
    ...(teacher === null ? {} : {
      teacher_topk_indices: teacher.teacher_topk_indices.filled(),
      teacher_topk_logprobs: teacher.teacher_topk_logprobs.filled(),
    }),
    status: statusOf(judged, path),
    metadata: {
      ...metadata,
      task_id: task.taskId,
      group_id: settings.groupId,
      role: leaf.role,
      path: leaf.path,
      turn_rewards: task.perTurnRewards,
      ...(teacher === null ? {} : { teacher: teacher.teacher }),
    },
    generate_function_path: null,
    custom_rm_path: null,
    train_metadata: null,
    session_id: settings.routingKey,
    non_generation_time: path.spans.reduce((sum, { turn: { record } }) => sum + record.waitMs, 0) / 1000,
    spec_info: {
      spec_accept_token_num: 0,
      spec_draft_token_num: 0,
      spec_verify_ct: 0,
      completion_token_num: path.sampledMask.reduce((sum, bit) => sum + bit, 0),
    },
    prefix_cache_info: {
      cached_tokens: path.spans.reduce((sum, { turn: { record } }) => sum + (record.cachedTokens ?? 0), 0),
      total_prompt_tokens: path.spans.reduce((sum, { turn: { record } }) => sum + record.promptTokens, 0),
    },
  };
}

function statusOf(judged: JudgedTask, path: PackedPath): string {
  const { outcome, status } = judged.task;
  if (outcome === "aborted") return "aborted";
  if (outcome === "failed" || outcome === "infra") return "failed";
  if (isTruncated(judged, path)) return "truncated";
  return status === "finished" ? "completed" : "pending";
}
