/** The trained rows as slime's samples: the dictionaries that its `Sample.from_dict` reads. It knows no other trainer. */

import type { PackedPath } from "../../core/packed_path.ts";
import type { Tokenizer } from "../../ports/tokenizer.ts";
import { isTruncated, type PackedRow, packRows, type RowFilter, type RowParts } from "./export_rows.ts";
import { ceFields, exportHead, rolloutId } from "./export_shapes.ts";
import type { JudgedTask } from "./judged_task.ts";
import { type FoundScores, type PathScores, pathScores } from "../teacher/kept_scores.ts";
import { base64Of, extraNotes, type PathExtras, pathExtras } from "../extras/path_extras.ts";

/** Which rows become samples, and how. */
export interface SlimeFilter extends RowFilter {
  /**
   * Whether `teacher_log_probs` is +1.0 where a token trains by cross entropy; a logprob never is. Rows in which nothing
   * else trains are then samples too.
   */
  readonly ceSentinel?: boolean | undefined;
}

/** What of a row decides how it trains beside its tokens. */
interface TeacherColumns {
  readonly scores: PathScores | null;
  /** R values, or null where the row has none. */
  readonly logprobs: readonly unknown[] | null;
}

/** Samples on the wire, one for each row that trains; all have one `rollout_id`. */
export function exportSlime(judged: JudgedTask, filter: SlimeFilter, parts: RowParts): Record<string, unknown> {
  const ceSentinel = filter.ceSentinel === true;
  const packed = packRows(judged, filter);
  const trained = packed.rows.filter(({ lossMask, ceMask }) => {
    return lossMask.includes(1) || (ceSentinel && ceMask.includes(1));
  });
  const extras = trained.map(({ path }) => pathExtras(path, parts.extras));
  const columns = trained.map((row) => teacherColumns(row, parts.scores, { ceSentinel }));
  // A zero in the place of a missing score would be taken for one.
  const unscored = ceSentinel && columns.some(({ logprobs }) => logprobs === null);
  const nothing = trained.length === 0 ? "nothing trains" : unscored ? "ce_sentinel: not every row is scored" : null;
  const reason = packed.reason ?? nothing;
  return {
    ...exportHead(judged, reason, [...packed.notes, ...parts.scores.notes, ...extraNotes(extras)]),
    samples: reason === null
      ? trained.map((row, k) => sampleShape(judged, row, { ...parts, teacher: columns[k]!, extras: extras[k]! }))
      : [],
  };
}

function teacherColumns(
  { path, lossMask, ceMask }: PackedRow,
  found: FoundScores,
  { ceSentinel }: { readonly ceSentinel: boolean },
): TeacherColumns {
  const scores = pathScores(path, found.kept, lossMask);
  if (scores === null && (!ceSentinel || lossMask.includes(1))) return { scores, logprobs: null };
  const filled = scores?.teacher_log_probs.filled() ?? Array.from(ceMask, () => 0);
  const logprobs = ceSentinel ? filled.map((value, k) => ceMask[k] === 1 ? CE_SENTINEL : value) : filled;
  return { scores, logprobs };
}

/** The seed system's mark of a token that trains by cross entropy. */
const CE_SENTINEL = 1.0;

function sampleShape(
  judged: JudgedTask,
  { leaf, path, lossMask, ceMask }: PackedRow,
  { tokenizer, teacher, extras }: {
    readonly tokenizer: Tokenizer;
    readonly teacher: TeacherColumns;
    readonly extras: PathExtras | null;
  },
): Record<string, unknown> {
  const { task } = judged;
  const { settings } = task;
  const { scores } = teacher;
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
    ...ceFields(task, ceMask),
    weight_versions: path.weightVersions.flatMap(({ version }) => version === null ? [] : [version]),
    rollout_log_probs: Array.from(path.logprobs),
    rollout_top_p_token_ids: extras?.topPIds ? Array.from(extras.topPIds.ids) : null,
    rollout_top_p_token_offsets: extras?.topPIds ? Array.from(extras.topPIds.offsets) : null,
    // As engines send them, and slime decodes them: int32 in base64, (tokens - 1) x layers x experts chosen.
    rollout_routed_experts: extras?.routedExperts ? base64Of(extras.routedExperts) : null,
    remove_sample: false,
    // slime makes tensors of these: positions that are no sampled token hold 0.0 under the loss mask, as logprobs do.
    teacher_log_probs: teacher.logprobs,
    ...(scores === null ? {} : {
      teacher_topk_indices: scores.teacher_topk_indices.filled(),
      teacher_topk_logprobs: scores.teacher_topk_logprobs.filled(),
    }),
    status: statusOf(judged, path),
    metadata: {
      ...metadata,
      task_id: task.taskId,
      group_id: settings.groupId,
      role: leaf.role,
      path: leaf.path,
      turn_rewards: task.perTurnRewards,
      ...(scores === null ? {} : { teacher: scores.teacher }),
      ...(extras === null ? {} : { extras_missing: extras.missing }),
    },
    generate_function_path: null,
    custom_rm_path: null,
    train_metadata: null,
    session_id: settings.routingKey,
    non_generation_time: path.spans.reduce((sum, { turn: { record } }) => sum + record.waitMs, 0) / 1000,
    ...infoFields(path, extras),
  };
}

/** What slime counts. What was asked for and is missing is left out: slime then knows of nothing. */
function infoFields(path: PackedPath, extras: PathExtras | null): Record<string, unknown> {
  const spec = extras?.names.includes("spec_info") ? extras.specInfo : {
    spec_accept_token_num: 0,
    spec_draft_token_num: 0,
    spec_verify_ct: 0,
    completion_token_num: path.sampledMask.reduce((sum, bit) => sum + bit, 0),
  };
  const prefix = extras?.names.includes("prefix_cache_info") ? extras.prefixCacheInfo : {
    cached_tokens: path.spans.reduce((sum, { turn: { record } }) => sum + (record.cachedTokens ?? 0), 0),
    total_prompt_tokens: path.spans.reduce((sum, { turn: { record } }) => sum + record.promptTokens, 0),
  };
  return { ...(spec === null ? {} : { spec_info: spec }), ...(prefix === null ? {} : { prefix_cache_info: prefix }) };
}

function statusOf(judged: JudgedTask, path: PackedPath): string {
  const { outcome, status } = judged.task;
  if (outcome === "aborted") return "aborted";
  if (outcome === "failed" || outcome === "infra") return "failed";
  if (isTruncated(judged, path)) return "truncated";
  return status === "finished" ? "completed" : "pending";
}
