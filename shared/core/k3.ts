/** The K3 estimate of the reverse KL divergence from logprobs of one token under teacher and student. Numbers only. */

/** How a masked array becomes one number, or stays. */
export type Reduction = "mean" | "sum" | "none";

/** exp overflows a double above 709.78; the estimate stays finite for any difference of finite logprobs. */
const LARGEST_RATIO = 700;

/**
 * K3 of one token: exp(r) - r - 1 with r = log p_teacher - log p_student. Never negative, 0 where both agree. `clip`
 * bounds |r| first. Computed as expm1(r) - r, since exp(r) - 1 loses all digits where r is small.
 */
export function k3(teacherLogprob: number, studentLogprob: number, options: { readonly clip?: number } = {}): number {
  const bound = Math.min(options.clip ?? LARGEST_RATIO, LARGEST_RATIO);
  const ratio = teacherLogprob - studentLogprob;
  const clipped = Math.max(-(options.clip ?? Infinity), Math.min(bound, ratio));
  // The series' next term is below a double's resolution where this is used.
  if (Math.abs(clipped) < 1e-4) return clipped * clipped * (0.5 + clipped / 6 + clipped * clipped / 24);
  return Math.expm1(clipped) - clipped;
}

/** K3 of every position whose mask is 1, null elsewhere. Arrays have one length. */
export function k3PerToken(
  logprobs: {
    readonly teacher: ArrayLike<number>;
    readonly student: ArrayLike<number>;
    readonly mask: ArrayLike<number> | null;
  },
  options: { readonly clip?: number } = {},
): (number | null)[] {
  return Array.from(
    logprobs.teacher,
    (teacher, k) =>
      logprobs.mask !== null && logprobs.mask[k] === 0 ? null : k3(teacher, logprobs.student[k]!, options),
  );
}

/** The mean or sum over the positions that are not null; null for `none`, and for a mean of nothing. */
export function reduceK3(values: readonly (number | null)[], reduction: Reduction): number | null {
  if (reduction === "none") return null;
  let sum = 0;
  let lost = 0;
  let count = 0;
  for (const value of values) {
    if (value === null) continue;
    // Kahan's sum: a million small terms beside a few huge ones.
    const term = value - lost;
    const next = sum + term;
    lost = next - sum - term;
    sum = next;
    count++;
  }
  if (reduction === "sum") return sum;
  return count === 0 ? null : sum / count;
}
