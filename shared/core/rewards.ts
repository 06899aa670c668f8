/** Advantages from rewards. It knows groups and rollouts, not tasks. */

/** A row's reward as the trainer has it. Rows of one rollout share its reward. */
export interface RewardRow {
  /** Rollouts of one prompt. */
  readonly groupId: string | number;
  /** The rollout the row belongs to. */
  readonly rolloutId: string | number;
  /** The rollout's reward. */
  readonly reward: number;
  /** Whether the row may count at all. */
  readonly included: boolean;
}

/** How rewards become advantages. */
export interface NormalizeOptions {
  /** `grpo`: distance from the group's mean, in standard deviations; `identity`: the reward itself. */
  readonly strategy: "grpo" | "identity";
  /** The deviation that is divided by: of a sample (n - 1), of a population (n), or none. */
  readonly std: "sample" | "population" | "none";
  /** Added to the deviation, so that equal rewards give 0 and not NaN. */
  readonly eps: number;
}

/** What a row's reward is worth. */
export interface RewardAdvantage {
  /** 0 of an excluded row. */
  readonly advantage: number;
  /** Whether it stands outside the baseline. */
  readonly excluded: boolean;
  /** Whether it is its group's only data point: there is nothing to compare it with, and its advantage is 0 under `grpo`. */
  readonly singleton: boolean;
}

/** Rows of one rollout that name different rewards: which is the rollout's can't be told. */
export interface RewardConflict {
  /** Index of the row that disagrees with an earlier one. */
  readonly row: number;
  /** The reward of the earlier row. */
  readonly expected: number;
}

/**
 * One data point per rollout, whatever its number of rows: a rollout that left many rows must not weigh more in its
 * group's baseline. Excluded rows give no data point. Returns one entry a row, or the first conflict.
 */
export function normalizeRewards(
  rows: readonly RewardRow[],
  options: NormalizeOptions,
): readonly RewardAdvantage[] | RewardConflict {
  const groups = new Map<string, Map<string, number>>();
  for (const [index, row] of rows.entries()) {
    if (!row.included) continue;
    const group = groups.get(nameOf(row.groupId)) ?? new Map<string, number>();
    groups.set(nameOf(row.groupId), group);
    const known = group.get(nameOf(row.rolloutId));
    if (known !== undefined && known !== row.reward) return { row: index, expected: known };
    group.set(nameOf(row.rolloutId), row.reward);
  }
  const baselines = new Map([...groups].map(([name, group]) => [name, baselineOf([...group.values()], options)]));
  return rows.map((row) => {
    const baseline = baselines.get(nameOf(row.groupId));
    if (!row.included || baseline === undefined) return { advantage: 0, excluded: true, singleton: false };
    const advantage = options.strategy === "identity" ? row.reward : (row.reward - baseline.mean) / baseline.scale;
    return { advantage, excluded: false, singleton: baseline.points === 1 };
  });
}

/** A string and a number that look alike are different names. */
function nameOf(id: string | number): string {
  return `${typeof id}:${id}`;
}

function baselineOf(
  rewards: readonly number[],
  options: NormalizeOptions,
): { mean: number; scale: number; points: number } {
  const points = rewards.length;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / points;
  if (options.std === "none") return { mean, scale: 1, points };
  const squares = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  const divisor = options.std === "sample" ? points - 1 : points;
  return { mean, scale: (divisor === 0 ? 0 : Math.sqrt(squares / divisor)) + options.eps, points };
}
