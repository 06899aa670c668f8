/** `POST /tasks/rewards/normalize`. */

import { z } from "zod";
import { Outcome } from "./tasks.ts";

const id = z.union([z.string().min(1).max(256), z.int()]);

/** The request: rows as a trainer holds them. */
export const NormalizeRewards = z.strictObject({
  rows: z.array(z.strictObject({
    group_id: id,
    rollout_id: id,
    reward: z.number(),
    outcome: Outcome.nullish(),
    include: z.boolean().default(true),
  })).max(1_000_000),
  strategy: z.enum(["grpo", "identity"]),
  std: z.enum(["sample", "population", "none"]),
  eps: z.number().min(0).default(1e-6),
  exclude: z.array(Outcome).default(["infra", "aborted"]),
});
/** A checked request. */
export type NormalizeRewards = z.output<typeof NormalizeRewards>;
