/** What a scoring reply is checked against and read into. It reads nothing. */

import type { TeacherScoreRequest } from "../../ports/teacher.ts";
import { inconsistent } from "../sglang/engine_failure.ts";

/** What a reply is checked against: the request, in the vocabulary that ids are in. */
export type ScanExpectation = Omit<TeacherScoreRequest, "rid"> & { readonly vocabSize: number };

/** Where scores go: arrays as in {@linkcode TeacherScores}, for the positions that are kept. */
export interface ScoreArrays {
  readonly logprobs: Float64Array;
  readonly topkIndices: Int32Array;
  readonly topkLogprobs: Float32Array;
  readonly tokenIdsLogprobs: Float32Array;
}

/** Engine and trainer may compute the two ways to a logprob in another order of sums. */
const SAME_LOGPROB = 1e-2;

/** Room for all that is asked for. */
export function scoreArrays({ response, mask, topK, tokenIds }: ScanExpectation): ScoreArrays {
  const positions = mask === null ? response.length : mask.reduce((sum, bit) => sum + bit, 0);
  return {
    logprobs: new Float64Array(positions),
    topkIndices: new Int32Array(positions * topK),
    topkLogprobs: new Float32Array(positions * topK),
    tokenIdsLogprobs: new Float32Array(positions * tokenIds.length),
  };
}

/** The token's own logprob and the top list must tell one distribution; else `inconsistent` is thrown. */
export function assertAgreement({ response, mask, topK }: ScanExpectation, arrays: ScoreArrays): void {
  if (topK === 0) return;
  const { logprobs, topkIndices, topkLogprobs } = arrays;
  let kept = 0;
  for (let k = 0; k < response.length; k++) {
    if (mask !== null && mask[k] !== 1) continue;
    const logprob = logprobs[kept]!;
    const tolerance = SAME_LOGPROB * Math.max(1, Math.abs(logprob));
    const from = kept * topK;
    const at = topkIndices.subarray(from, from + topK).indexOf(response[k]!);
    const last = topkLogprobs[from + topK - 1]!;
    const agrees = at < 0 ? logprob <= last + tolerance : Math.abs(topkLogprobs[from + at]! - logprob) <= tolerance;
    if (!agrees) {
      throw inconsistent(`Score ${k + 1} and its top list tell different things of id ${response[k]}`, {
        position: k + 1,
      });
    }
    kept++;
  }
}
