/** What a top list leaves out. */

/** 1 minus the top list's probabilities for each of `rows` rows of `topK` logprobs, in float64; never below 0. */
export function tailMasses(
  topkLogprobs: Float32Array,
  { rows, topK }: { readonly rows: number; readonly topK: number },
): Float64Array {
  const masses = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    let rest = 1;
    for (let k = 0; k < topK; k++) rest -= Math.exp(topkLogprobs[row * topK + k]!);
    masses[row] = Math.max(0, rest);
  }
  return masses;
}
