/** Requests of the teacher endpoints. */

import { z } from "zod";
import { Outcome, TaskId } from "./tasks.ts";

const ids = z.array(z.int());
const bit = z.union([z.literal(0), z.literal(1)], { error: "must be 0 or 1" });

/** What sampled logprobs are logprobs of; what is not given has SGLang's default. */
export const StudentBasis = z.strictObject({
  temperature: z.number().min(0).default(1),
  top_p: z.number().gt(0).max(1).default(1),
  top_k: z.int().min(-1).default(-1),
  min_p: z.number().min(0).max(1).default(0),
  penalties: z.boolean().default(false),
  constrained: z.boolean().default(false),
});

/** K of the most likely tokens. */
export const TopK = z.int().min(0).max(1024);

/** `POST /teacher-score`. */
export const TeacherScoreBody = z.strictObject({
  prompt_ids: ids.min(1),
  response_ids: ids.min(1),
  top_k: TopK.optional(),
  token_ids: ids.max(4096).default([]),
  mask: z.array(bit).optional(),
  student_log_probs: z.array(z.number().nullable()).optional(),
  student_basis: StudentBasis.optional(),
  allow_mixed_basis: z.boolean().default(false),
  k3: z.strictObject({
    clip: z.number().positive().optional(),
    reduction: z.enum(["mean", "sum", "none"]).default("mean"),
  }).optional(),
}).superRefine((body, context) => {
  const length = body.response_ids.length;
  for (const field of ["mask", "student_log_probs"] as const) {
    const given = body[field];
    if (given !== undefined && given.length !== length) {
      context.addIssue({ code: "custom", path: [field], message: `must have ${length} entries, not ${given.length}` });
    }
  }
  const student = body.student_log_probs;
  if (student === undefined) {
    for (const field of ["k3", "student_basis"] as const) {
      if (body[field] !== undefined) {
        context.addIssue({ code: "custom", path: [field], message: "needs student_log_probs" });
      }
    }
    return;
  }
  const at = student.findIndex((value, k) => value === null && body.mask?.[k] !== 0);
  if (at >= 0) {
    context.addIssue({
      code: "custom",
      path: ["student_log_probs", at],
      message: "must be a number where mask is not 0",
    });
  }
});
/** Messages and tools are read by the chat dialect; here they are only lists of objects. */
const objects = z.array(z.record(z.string(), z.json()));

/** `POST /teacher-score/label`. */
export const LabelBody = z.strictObject({
  history: objects.optional(),
  task_prompt: z.string().min(1).optional(),
  system_prompt: z.string().min(1).optional(),
  input_ids: ids.min(1).optional(),
  tools: objects.optional(),
  chat_template_kwargs: z.record(z.string(), z.json()).optional(),
  max_tokens: z.int().min(1).optional(),
}).superRefine((body, context) => {
  const hasMessages = body.history !== undefined || body.task_prompt !== undefined || body.system_prompt !== undefined;
  if (hasMessages === (body.input_ids !== undefined)) {
    const message = "either input_ids, or history, task_prompt and system_prompt must be given";
    context.addIssue({ code: "custom", path: ["history"], message });
  }
});
/** A checked request. */
export type LabelBody = z.output<typeof LabelBody>;

/** Stored tasks, and what of them counts. */
const storedTasks = {
  task_ids: z.array(TaskId).min(1).max(100_000).optional(),
  group_id: z.string().min(1).max(256).optional(),
  only: z.strictObject({
    outcomes: z.array(Outcome).min(1).optional(),
    min_reward: z.number().optional(),
    roles: z.array(z.enum(["main", "branch", "side", "superseded"])).min(1).optional(),
  }).default({}),
};

function namesTasks(body: { task_ids?: unknown; group_id?: unknown }): boolean {
  return (body.task_ids === undefined) !== (body.group_id === undefined);
}

const NAMES_TASKS = { error: "exactly one of task_ids and group_id must be given", path: ["task_ids"] };

/** `POST /teacher-score/tasks`. */
export const ScoreTasksBody = z.strictObject({ ...storedTasks, top_k: TopK.optional() }).refine(
  namesTasks,
  NAMES_TASKS,
);
/** `POST /teacher-score/relabel`. */
export const RelabelBody = z.strictObject({
  ...storedTasks,
  tools: objects.optional(),
  max_tokens: z.int().min(1).optional(),
  after: z.strictObject({ task_id: TaskId, turn: z.int().min(0) }).optional(),
}).refine(namesTasks, NAMES_TASKS);
/** A checked request. */
export type RelabelBody = z.output<typeof RelabelBody>;

/** A checked request. */
export type ScoreTasksBody = z.output<typeof ScoreTasksBody>;

/** A checked request. */
export type TeacherScoreBody = z.output<typeof TeacherScoreBody>;
