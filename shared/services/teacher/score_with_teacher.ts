/** Scores by the teacher, tried until they are right or the retries are used up. It knows neither tasks nor HTTP. */

import { VerbatimError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { Logger } from "../../ports/logger.ts";
import type { TeacherLoad } from "../../ports/metrics.ts";
import type { Teacher, TeacherScoreRequest, TeacherScores } from "../../ports/teacher.ts";
import { Slots } from "./slots.ts";

/** What is scored. */
export type ScoreInput = Omit<TeacherScoreRequest, "rid">;

/** The teacher, its limits, and how often it is asked again. */
export interface TeacherScorerOptions {
  readonly teacher: Teacher;
  /** Its name, under which scores are kept. */
  readonly model: string;
  /** Its weights; absent: those of its first scores. A teacher is frozen: scores by others are refused. */
  readonly weightVersion?: string | null | undefined;
  /** Ids are below it; the student's own. */
  readonly vocabSize: number;
  /** Prompt and response together. */
  readonly maxContextTokens: number;
  /** K where the caller names none. */
  readonly defaultTopK: number;
  /** Attempts after the first. */
  readonly retries: number;
  /** The wait after attempt n, from 0, is this times 2 to the n, and up to a quarter more. */
  readonly baseDelayMs: number;
  /** Sequences scored at once. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  /** In [0, 1): spreads retries. */
  readonly random: () => number;
}

/** What a store takes for a name. */
const MOST_NAME = 256;

/** Scores sequences, some at a time. */
export class TeacherScorer {
  /** Name and limits. */
  readonly options: TeacherScorerOptions;
  readonly #slots: Slots;
  #weightVersion: string | null | undefined;
  #load: TeacherLoad = { scored: 0, failed: 0, retries: 0, tokens: 0 };

  constructor(options: TeacherScorerOptions) {
    this.options = options;
    this.#slots = new Slots(options.concurrency);
    this.#weightVersion = options.weightVersion;
  }

  /** Under which its scores are kept: what it is and which weights it has. */
  get name(): string {
    return `${this.options.model}@${this.#weightVersion ?? ""}`.slice(-MOST_NAME);
  }

  /** What it was asked for since the start. */
  get load(): TeacherLoad {
    return this.#load;
  }

  /** Who scores. */
  get identity(): { readonly model: string; readonly weight_version: string | null } {
    return { model: this.options.model, weight_version: this.#weightVersion ?? null };
  }

  /**
   * The scores, whole and checked. A sequence beyond the teacher's context is `context_length_exceeded`; a teacher that
   * keeps failing, or refuses for good, is `teacher_failed` with what it last did.
   */
  async score(input: ScoreInput, signal: AbortSignal): Promise<TeacherScores> {
    const { maxContextTokens } = this.options;
    const tokens = input.prompt.length + input.response.length;
    if (tokens > maxContextTokens) {
      throw new VerbatimError(
        "context_length_exceeded",
        `The teacher's context is ${maxContextTokens} tokens; prompt and response have ${tokens}`,
        { details: { tokens, limit: maxContextTokens } },
      );
    }
    using _slot = await this.#slots.take(signal);
    try {
      const scores = await this.#tryAgain(input, signal);
      this.#count({ scored: 1, tokens: input.response.length });
      return scores;
    } catch (thrown) {
      // A caller that hung up says nothing of the teacher.
      if (!signal.aborted) this.#count({ failed: 1 });
      throw thrown;
    }
  }

  #count(more: Partial<TeacherLoad>): void {
    const { scored = 0, failed = 0, retries = 0, tokens = 0 } = more;
    const load = this.#load;
    this.#load = {
      scored: load.scored + scored,
      failed: load.failed + failed,
      retries: load.retries + retries,
      tokens: load.tokens + tokens,
    };
  }

  async #tryAgain(input: ScoreInput, signal: AbortSignal): Promise<TeacherScores> {
    const { teacher, retries, baseDelayMs, clock, ids, logger, random } = this.options;
    for (let attempt = 0;; attempt++) {
      try {
        const scores = await teacher.score({ ...input, rid: ids.uuid() }, signal);
        this.#assertFrozen(scores);
        return scores;
      } catch (cause) {
        signal.throwIfAborted();
        if (!(cause instanceof VerbatimError)) throw cause;
        if (attempt >= retries || !cause.retryable) throw failed(cause, attempt + 1);
        const backoffMs = baseDelayMs * 2 ** attempt * (1 + random() / 4);
        const waitMs = Math.max(backoffMs, (cause.retryAfterS ?? 0) * 1000);
        logger.info("The teacher is asked again", { attempt: attempt + 1, wait_ms: waitMs, reason: cause.message });
        await clock.sleep(waitMs, signal);
        this.#count({ retries: 1 });
      }
    }
  }

  #assertFrozen({ weightVersion }: TeacherScores): void {
    // Replies decide, not what a router says of its workers.
    if (this.#weightVersion === undefined) this.#weightVersion = weightVersion;
    const wanted = this.#weightVersion;
    if (weightVersion === wanted) return;
    throw new VerbatimError(
      "engine_inconsistent",
      `The teacher scored with the weights ${String(weightVersion)}; when this process started it had ` +
        `${String(wanted)}. A teacher is frozen: start the gateway anew to score with other weights`,
      { details: { weight_version: weightVersion, expected: wanted } },
    );
  }
}

function failed(cause: VerbatimError, attempts: number): VerbatimError {
  const times = attempts === 1 ? "once" : `${attempts} times`;
  return new VerbatimError("teacher_failed", `The teacher was asked ${times} and failed: ${cause.message}`, {
    details: { ...cause.details, attempts, cause: cause.code },
    retryable: cause.retryable,
    cause,
    ...(cause.retryAfterS === undefined ? {} : { retryAfterS: cause.retryAfterS }),
  });
}
