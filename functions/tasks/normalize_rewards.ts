/** `POST /tasks/rewards/normalize`: advantages for a trainer's rows. */

import type { Context } from "hono";
import { VerbatimError } from "../../shared/core/errors.ts";
import { normalizeRewards } from "../../shared/core/rewards.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { NormalizeRewards } from "../../shared/schemas/rewards.ts";
import type { HandlerServices } from "../handler_services.ts";

/** Every row with its advantage, in the order given. Rows of one rollout that disagree are `invalid_request`. */
export async function normalizeRewardsRoute(context: Context, services: HandlerServices): Promise<Response> {
  const { rows, exclude, ...options } = await readBody(context, NormalizeRewards, services);
  const advantages = normalizeRewards(
    rows.map((row) => ({
      groupId: row.group_id,
      rolloutId: row.rollout_id,
      reward: row.reward,
      included: row.include && !(row.outcome && exclude.includes(row.outcome)),
    })),
    options,
  );
  if ("row" in advantages) {
    const field = `rows.${advantages.row}.reward`;
    const reason = `another row of its rollout has the reward ${advantages.expected}`;
    throw new VerbatimError("invalid_request", `Field "${field}": ${reason}`, { details: { field, reason } });
  }
  return context.json({
    rows: rows.map((row, k) => {
      const { advantage, excluded, singleton } = advantages[k]!;
      return { ...row, advantage, ...(excluded ? { excluded } : {}), ...(singleton ? { singleton } : {}) };
    }),
  });
}
