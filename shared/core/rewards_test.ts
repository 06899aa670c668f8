import assert from "node:assert/strict";
import fc from "fast-check";
import { normalizeRewards, type RewardRow } from "./rewards.ts";

const GRPO = { strategy: "grpo", std: "sample", eps: 1e-6 } as const;

function row(groupId: string, rolloutId: string | number, reward: number, included = true): RewardRow {
  return { groupId, rolloutId, reward, included };
}

Deno.test("normalizeRewards() counts a rollout of many rows once", () => {
  const rows = [row("g", 1, 1), row("g", 1, 1), row("g", 1, 1), row("g", 2, 0)];
  const advantages = normalizeRewards(rows, { ...GRPO, std: "none" });
  assert.deepEqual(
    advantages,
    [0.5, 0.5, 0.5, -0.5].map((advantage) => ({ advantage, excluded: false, singleton: false })),
  );
});

Deno.test("normalizeRewards() divides by the deviation asked for", () => {
  const rows = [row("g", 1, 1), row("g", 2, 3)];
  const of = (std: "sample" | "population") => {
    const result = normalizeRewards(rows, { strategy: "grpo", std, eps: 0 });
    return "row" in result ? NaN : result[1]!.advantage;
  };
  assert.ok(Math.abs(of("sample") - 1 / Math.SQRT2) < 1e-12);
  assert.equal(of("population"), 1);
});

Deno.test("normalizeRewards() keeps excluded rows out of the baseline", () => {
  const result = normalizeRewards([row("g", 1, 1), row("g", 2, 0), row("g", 3, -9, false)], { ...GRPO, std: "none" });
  assert.deepEqual(result, [
    { advantage: 0.5, excluded: false, singleton: false },
    { advantage: -0.5, excluded: false, singleton: false },
    { advantage: 0, excluded: true, singleton: false },
  ]);
});

Deno.test("normalizeRewards() marks a group's only data point", () => {
  const result = normalizeRewards([row("g", 1, 5), row("g", 1, 5)], GRPO);
  assert.deepEqual(result, Array(2).fill({ advantage: 0, excluded: false, singleton: true }));
});

Deno.test("normalizeRewards() names a row that disagrees with its rollout", () => {
  assert.deepEqual(normalizeRewards([row("g", 1, 5), row("g", 1, 4)], GRPO), { row: 1, expected: 5 });
});

Deno.test('normalizeRewards() tells the rollout 1 from the rollout "1"', () => {
  const result = normalizeRewards([row("g", 1, 1), row("g", "1", 0)], { ...GRPO, std: "none" });
  assert.deepEqual("row" in result ? [] : result.map(({ advantage }) => advantage), [0.5, -0.5]);
});

Deno.test("normalizeRewards() gives finite advantages that sum to zero over a group's rollouts", () => {
  const rewards = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(rewards, fc.constantFrom("sample" as const, "population" as const, "none" as const), (values, std) => {
      const result = normalizeRewards(values.map((reward, k) => row("g", k, reward)), {
        strategy: "grpo",
        std,
        eps: 1e-6,
      });
      assert.ok(!("row" in result));
      const sum = result.reduce((total, { advantage }) => total + advantage, 0);
      assert.ok(result.every(({ advantage }) => Number.isFinite(advantage)));
      const scale = Math.max(1, ...values.map(Math.abs)) * (std === "none" ? 1 : 1e6);
      assert.ok(Math.abs(sum) <= 1e-9 * scale * values.length, String(sum));
    }),
  );
});
