/** Rewards become advantages over HTTP. */

import assert from "node:assert/strict";
import { startHarness } from "./harness.ts";

Deno.test("rewards/normalize answers every row, in order, with its advantage", async () => {
  await using harness = await startHarness();
  const { status, body } = await harness.admin("POST", "/tasks/rewards/normalize", {
    rows: [
      { group_id: "g", rollout_id: 1, reward: 1 },
      { group_id: "g", rollout_id: 2, reward: 0, outcome: "truncated" },
      { group_id: "g", rollout_id: 3, reward: 0, outcome: "infra" },
      { group_id: "alone", rollout_id: 4, reward: 7 },
    ],
    strategy: "grpo",
    std: "none",
  });
  assert.equal(status, 200);
  assert.deepEqual(body.rows.map((row: { advantage: number }) => row.advantage), [0.5, -0.5, 0, 0]);
  assert.equal(body.rows[2].excluded, true);
  assert.equal(body.rows[3].singleton, true);
  assert.equal(body.rows[1].excluded, undefined);
});

Deno.test("rewards/normalize refuses rows of one rollout that disagree, and unknown fields", async () => {
  await using harness = await startHarness();
  const rows = [{ group_id: "g", rollout_id: 1, reward: 1 }, { group_id: "g", rollout_id: 1, reward: 2 }];
  const disagreeing = await harness.admin("POST", "/tasks/rewards/normalize", { rows, strategy: "grpo", std: "none" });
  assert.equal(disagreeing.status, 400);
  assert.equal(disagreeing.body.error.details.field, "rows.1.reward");
  const unknown = await harness.admin("POST", "/tasks/rewards/normalize", {
    rows: [],
    strategy: "grpo",
    std: "none",
    epsilon: 1,
  });
  assert.equal(unknown.body.error.code, "unknown_field");
});
