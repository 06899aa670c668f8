/** One request for scores, from its ids to what a trainer reads: scores, tail mass and K3, as JSON text or as tensors. */

import { checkedIds } from "../../core/checked_ids.ts";
import { VerbatimError } from "../../core/errors.ts";
import { k3PerToken, reduceK3 } from "../../core/k3.ts";
import type { Tensor } from "../../core/safetensors.ts";
import { type Basis, isRaw } from "../../core/sampling.ts";
import type { TeacherScores } from "../../ports/teacher.ts";
import type { TeacherScoreBody } from "../../schemas/teacher_score.ts";
import type { TeacherScorer } from "./score_with_teacher.ts";
import { tailMasses } from "./tail_masses.ts";

/** Scores of a response of R tokens. */
export interface ScoredResponse {
  /** R. */
  readonly length: number;
  readonly topK: number;
  /** The number of ids that were asked for at every position. */
  readonly chosen: number;
  /** Null: every position is scored. */
  readonly mask: Uint8Array | null;
  readonly scores: TeacherScores;
  /** One for each scored position. */
  readonly tailMass: Float64Array;
  /** One for each scored position, where student logprobs came along. */
  readonly k3: Float64Array | null;
  /** What is small: the reduced K3, the teacher. */
  readonly rest: Readonly<Record<string, unknown>>;
}

/** Text of a body is made in pieces of some of these characters. */
const PIECE_CHARACTERS = 64 * 1024;

/** Scores what the request asks for. Bad ids, a basis that does not fit and an overlong sequence are refused before the teacher is asked. */
export async function scoreResponse(
  request: TeacherScoreBody,
  scorer: TeacherScorer,
  signal: AbortSignal,
): Promise<ScoredResponse> {
  const { vocabSize, defaultTopK } = scorer.options;
  const topK = Math.min(request.top_k ?? defaultTopK, vocabSize);
  assertBasis(request);
  const mask = request.mask === undefined ? null : Uint8Array.from(request.mask);
  const scores = await scorer.score({
    prompt: checkedIds(request.prompt_ids, vocabSize, "prompt_ids"),
    response: checkedIds(request.response_ids, vocabSize, "response_ids"),
    topK,
    tokenIds: checkedIds(request.token_ids, vocabSize, "token_ids"),
    mask,
  }, signal);
  const student = request.student_log_probs?.filter((_, k) => mask === null || mask[k] === 1);
  const k3 = student === undefined ? null : Float64Array.from(
    k3PerToken(
      { teacher: scores.logprobs, student: student.map((value) => value!), mask: null },
      request.k3?.clip === undefined ? {} : { clip: request.k3.clip },
    ),
    (value) => value!,
  );
  const reduction = request.k3?.reduction ?? "mean";
  return {
    length: request.response_ids.length,
    topK,
    chosen: request.token_ids.length,
    mask,
    scores,
    tailMass: tailMasses(scores.topkLogprobs, { rows: scores.logprobs.length, topK }),
    k3,
    rest: {
      ...(k3 === null ? {} : { k3_reduced: reduceK3(Array.from(k3), reduction), k3_reduction: reduction }),
      teacher: scorer.identity,
    },
  };
}

/** K3 compares logprobs of one distribution: sampled ones of another basis are none. */
function assertBasis(request: TeacherScoreBody): void {
  const basis: Basis | undefined = request.student_basis;
  if (basis === undefined || isRaw(basis) || request.allow_mixed_basis) return;
  throw new VerbatimError(
    "basis_mismatch",
    "The student's logprobs are not raw (temperature 1, no penalties, no grammar) and the teacher's are: K3 of them " +
      "estimates no divergence. Sample at the raw basis, or set allow_mixed_basis",
    { details: { student_basis: basis } },
  );
}

/** The answer's JSON text, in pieces. Positions that are not scored are null. */
export function* scoreJson(scored: ScoredResponse): Generator<string> {
  const { scores, topK, chosen, tailMass, k3 } = scored;
  yield '{"teacher_log_probs":[';
  yield* joined(scored, (kept) => number(scores.logprobs[kept]!));
  yield '],"teacher_topk_indices":[';
  yield* joined(scored, (kept) => row(scores.topkIndices, kept, topK));
  yield '],"teacher_topk_logprobs":[';
  yield* joined(scored, (kept) => row(scores.topkLogprobs, kept, topK));
  yield '],"tail_mass":[';
  yield* joined(scored, (kept) => number(tailMass[kept]!));
  if (chosen > 0) {
    yield '],"token_ids_logprobs":[';
    yield* joined(scored, (kept) => row(scores.tokenIdsLogprobs, kept, chosen));
  }
  if (k3 !== null) {
    yield '],"k3":[';
    yield* joined(scored, (kept) => number(k3[kept]!));
  }
  yield `],${JSON.stringify(scored.rest).slice(1)}`;
}

function* joined({ length, mask }: ScoredResponse, text: (kept: number) => string): Generator<string> {
  let piece = "";
  let kept = 0;
  for (let k = 0; k < length; k++) {
    if (k > 0) piece += ",";
    piece += mask === null || mask[k] === 1 ? text(kept++) : "null";
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  yield piece;
}

function row(values: Int32Array | Float32Array, kept: number, width: number): string {
  return `[${values.subarray(kept * width, (kept + 1) * width).join(",")}]`;
}

/** A finite number as JSON. */
function number(value: number): string {
  return String(value);
}

/** The answer as tensors of length R, 0 where `scored_mask` is 0. */
export function scoreTensors(scored: ScoredResponse): Tensor[] {
  const { length, topK, chosen, mask, scores, tailMass, k3 } = scored;
  const at = mask === null ? null : positionsOf(mask);
  const spread = <T extends Float32Array | Float64Array | Int32Array>(values: T, out: T, width: number): T => {
    if (at === null) out.set(values);
    else {for (let kept = 0; kept < at.length; kept++) {
        out.set(values.subarray(kept * width, (kept + 1) * width), at[kept]! * width);
      }}
    return out;
  };
  return [
    {
      name: "teacher_log_probs",
      shape: [length],
      data: spread(Float32Array.from(scores.logprobs), new Float32Array(length), 1),
    },
    {
      name: "teacher_topk_indices",
      shape: [length, topK],
      data: spread(scores.topkIndices, new Int32Array(length * topK), topK),
    },
    {
      name: "teacher_topk_logprobs",
      shape: [length, topK],
      data: spread(scores.topkLogprobs, new Float32Array(length * topK), topK),
    },
    { name: "tail_mass", shape: [length], data: spread(Float32Array.from(tailMass), new Float32Array(length), 1) },
    { name: "scored_mask", shape: [length], data: mask ?? new Uint8Array(length).fill(1) },
    ...(chosen === 0 ? [] : [{
      name: "token_ids_logprobs",
      shape: [length, chosen],
      data: spread(scores.tokenIdsLogprobs, new Float32Array(length * chosen), chosen),
    }]),
    ...(k3 === null ? [] : [{ name: "k3", shape: [length], data: spread(k3, new Float64Array(length), 1) }]),
  ];
}

function positionsOf(mask: Uint8Array): Uint32Array {
  return Uint32Array.from([...mask.keys()].filter((k) => mask[k] === 1));
}
