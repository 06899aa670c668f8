/** Requests of the tasks endpoints. */

import { z } from "zod";
import { EXTRA_NAMES } from "../core/turn_extras.ts";
import { SAMPLING_NAMES, SamplingParams } from "./sampling_params.ts";

/** A task's name. */
export const TaskId = z.string().regex(/^[A-Za-z0-9._:-]{1,128}$/, "must match [A-Za-z0-9._:-]{1,128}").refine(
  // A URL can't name them: they are resolved away.
  (id) => id !== "." && id !== "..",
  "must not be . or ..",
);
const name = z.string().min(1).max(256);
const metadata = z.record(z.string(), z.json());
const count = z.int().positive();

/** A reward: a number, or named numbers. */
export const Reward = z.union([z.number(), z.record(z.string(), z.number())]);

/** How a rollout ended. */
export const Outcome = z.enum(["completed", "truncated", "aborted", "failed", "infra"]);

/** Turns that the teacher executes: each with a probability, or the first ones. */
export const Rollin = z.strictObject({
  /** Probability that a turn is the teacher's. */
  beta: z.number().min(0).max(1).optional(),
  /** The first turns of a line that are the teacher's. */
  prefix_turns: z.int().nonnegative().optional(),
  /** What `beta` draws from; a prefix draws nothing. */
  seed: z.int().optional(),
}).superRefine(({ beta, prefix_turns, seed }, context) => {
  if ((beta === undefined) === (prefix_turns === undefined)) {
    context.addIssue({ code: "custom", message: "either beta or prefix_turns must be given" });
  }
  if (beta !== undefined && seed === undefined) {
    context.addIssue({ code: "custom", path: ["seed"], message: "must be given with beta" });
  }
});
/** A checked roll-in. */
export type Rollin = z.output<typeof Rollin>;

/** `POST /tasks`. */
export const CreateTask = z.strictObject({
  task_id: TaskId.optional(),
  group_id: name.optional(),
  rollout_id: z.union([name, z.int()]).optional(),
  parent_task_id: TaskId.optional(),
  routing_key: name.optional(),
  model: name.optional(),
  metadata: metadata.default({}),
  ttl_s: z.number().positive().max(31_536_000).optional(),
  max_turns: count.optional(),
  max_total_tokens: count.optional(),
  max_context_tokens: count.optional(),
  capture: z.boolean().default(true),
  history: z.enum(["append_only", "branch"]).default("append_only"),
  echo: z.enum(["lenient", "strict"]).optional(),
  on_repeat: z.enum(["auto", "replay", "resample"]).default("auto"),
  reasoning_history: z.enum(["keep", "template"]).default("keep"),
  main: z.strictObject({
    header: z.record(z.string(), z.string()).optional(),
    tools_include: name.optional(),
    system_includes: z.string().min(1).optional(),
  }).optional(),
  sampling: z.strictObject({
    fixed: SamplingParams.optional(),
    agent_may_set: z.array(z.enum(SAMPLING_NAMES)).optional(),
  }).optional(),
  train_roles: z.array(z.enum(["main", "branch", "side", "superseded"])).default(["main", "branch"]),
  on_abort: z.enum(["resume", "fail"]).default("resume"),
  max_version_span: count.optional(),
  score: z.enum(["off", "per_turn"]).default("off"),
  rollin: Rollin.optional(),
  capture_extras: z.array(z.string()).default([]),
});
/** A checked `POST /tasks`. */
export type CreateTask = z.output<typeof CreateTask>;

/** `POST /tasks/ID/finish`. */
export const FinishTask = z.strictObject({
  outcome: Outcome.optional(),
  cause: z.string().max(4096).optional(),
  reward: Reward.optional(),
  metadata: metadata.optional(),
  wait_s: z.number().min(0).max(3600).default(5),
});
/** A checked `POST /tasks/ID/finish`. */
export type FinishTask = z.output<typeof FinishTask>;

/** `PUT /tasks/ID/reward`. */
export const PutReward = z.strictObject({
  reward: Reward,
  outcome: Outcome.optional(),
  per_turn: z.record(z.string().regex(/^\d+$/, "must be a turn number"), z.number()).optional(),
});
/** A checked `PUT /tasks/ID/reward`. */
export type PutReward = z.output<typeof PutReward>;

/** `GET /tasks`. */
export const ListTasks = z.strictObject({
  group_id: name.optional(),
  status: z.enum(["open", "closing", "finished", "dropped", "expired"]).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  /** The last task id of the page before. */
  cursor: TaskId.optional(),
});

/** `GET /tasks/ID/result`. */
export const ResultQuery = z.strictObject({
  format: z.enum(["region", "rows", "slime"]).default("region"),
  roles: z.string().transform((text) => text.split(",").map((role) => role.trim())).pipe(
    z.array(z.enum(["main", "branch", "side", "superseded"])).min(1),
  ).optional(),
  max_version_span: z.coerce.number().int().positive().optional(),
  /** Of what the task captures; all where absent. */
  extras: z.string().transform((text) => text.split(",").map((name) => name.trim()).filter((name) => name !== ""))
    .pipe(z.array(z.enum(EXTRA_NAMES))).optional(),
  /** Of the slime form: whether tokens that train by cross entropy are marked in `teacher_log_probs`. */
  ce_sentinel: z.enum(["true", "false"]).transform((text) => text === "true").optional(),
}).superRefine(({ format, roles, max_version_span }, context) => {
  // The region is the main line, whole: a filter that would change nothing is a mistake.
  for (const [field, value] of Object.entries({ roles, max_version_span })) {
    if (format === "region" && value !== undefined) {
      context.addIssue({ code: "custom", path: [field], message: "only the rows and slime forms have it" });
    }
  }
}).refine(({ format, ce_sentinel }) => ce_sentinel !== true || format === "slime", {
  path: ["ce_sentinel"],
  message: "only the slime form has it",
});
/** A checked result query. */
export type ResultQuery = z.output<typeof ResultQuery>;
