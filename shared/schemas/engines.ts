/** Requests of the engines endpoints. Each action takes SGLang's own fields, and no others. */

import { z } from "zod";

const name = z.string().min(1).max(256);
const path = z.string().min(1).max(4096);
const version = z.string().min(1).max(256);
const flag = z.boolean().optional();

/** What every action may carry. */
const common = {
  /** Whose workers; the default model's where absent. */
  model: name.optional(),
  /** So many more tasks may be created; null: any number. Absent: as it was. */
  new_task_budget: z.int().min(0).nullable().optional(),
};

const actions = [
  z.strictObject({
    ...common,
    action: z.literal("pause"),
    mode: z.enum(["abort", "retract", "in_place"]).optional(),
  }),
  z.strictObject({ ...common, action: z.literal("continue"), torch_empty_cache: flag }),
  z.strictObject({
    ...common,
    action: z.literal("update_from_disk"),
    model_path: path,
    load_format: name.optional(),
    weight_version: version.optional(),
    abort_all_requests: flag,
    flush_cache: flag,
    is_async: flag,
    keep_pause: flag,
    recapture_cuda_graph: flag,
    token_step: z.int().min(0).optional(),
    torch_empty_cache: flag,
    manifest: z.json().optional(),
  }),
  z.strictObject({
    ...common,
    action: z.literal("set_version"),
    new_version: version,
    abort_all_requests: flag,
  }),
  z.strictObject({ ...common, action: z.literal("flush"), timeout: z.number().min(0).max(3600).optional() }),
  z.strictObject({ ...common, action: z.literal("abort_all") }),
  z.strictObject({ ...common, action: z.literal("release_memory"), tags: z.array(name).optional() }),
  z.strictObject({ ...common, action: z.literal("resume_memory"), tags: z.array(name).optional() }),
] as const;

/** `POST /engines/update`. */
export const UpdateEngines = z.discriminatedUnion("action", actions, {
  error: `must be one of ${actions.map(({ shape }) => shape.action.value).join(", ")}`,
});
/** A checked `POST /engines/update`. */
export type UpdateEngines = z.output<typeof UpdateEngines>;
