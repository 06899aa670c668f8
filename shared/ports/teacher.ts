/** The frozen teacher: an engine that says what it thinks of tokens it did not sample. Adapter: sglang_teacher. */

/** One prompt and the response whose tokens are scored. */
export interface TeacherScoreRequest {
  /** Fixed-length and unguessable; unlike any other attempt's. */
  readonly rid: string;
  /** At least one token. */
  readonly prompt: Uint32Array;
  /** R tokens. */
  readonly response: Uint32Array;
  /** K: the most likely tokens of each position that are told; 0 for none. */
  readonly topK: number;
  /** Ids whose logprobs are told at every position, in this order. */
  readonly tokenIds: Uint32Array;
  /** R bits: positions with 0 are context and nothing of them is kept. Null: all are kept. */
  readonly mask: Uint8Array | null;
}

/** Scores of the S kept positions in order: all of R, or those whose mask is 1. Every value is finite. */
export interface TeacherScores {
  /** S values: log p(token | everything before it). */
  readonly logprobs: Float64Array;
  /** S rows of K ids, each row by falling logprob. */
  readonly topkIndices: Int32Array;
  /** S rows of K logprobs. */
  readonly topkLogprobs: Float32Array;
  /** S rows of one logprob for each of the request's `tokenIds`. */
  readonly tokenIdsLogprobs: Float32Array;
  /** The teacher's weights, as it calls them; null where it does not tell. */
  readonly weightVersion: string | null;
}

/** What the teacher says of itself. */
export interface TeacherInfo {
  readonly modelPath: string | null;
  readonly tokenizerPath: string | null;
  readonly weightVersion: string | null;
  /** Prompt and response together, or null where it does not tell. */
  readonly maxContextTokens: number | null;
}

export interface Teacher {
  /**
   * One attempt. Whatever is wrong with the answer is an `engine_*` error with the position in its details; its
   * `retryable` says whether another attempt may help. Aborting the signal aborts the request on the teacher.
   */
  score(request: TeacherScoreRequest, signal: AbortSignal): Promise<TeacherScores>;
  info(signal: AbortSignal): Promise<TeacherInfo>;
  /** The ids of a text in the teacher's vocabulary; null where it does not tokenize for others. */
  tokenize(text: string, signal: AbortSignal): Promise<number[] | null>;
}
