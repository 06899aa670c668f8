/** Is this the teacher that it is taken for? Asked once, before anything is scored. */

import { VerbatimError } from "../../core/errors.ts";
import type { Teacher, TeacherInfo } from "../../ports/teacher.ts";
import type { Tokenizer } from "../../ports/tokenizer.ts";
import type { TeacherScorer } from "./score_with_teacher.ts";

/** Words, numbers, code and scripts: vocabularies differ somewhere in it. */
const PROBE_TEXT = 'The quick brown fox, 1234567890 times.\n\tdef f(x): return {"a": [x ** 2]}\n' +
  "\u00c5ngstr\u00f6m \u0434\u043e\u043c \u6f22\u5b57 \u0939\u093f \u{1f600}\r\n    <|im_start|>user";

/** What is known beforehand. */
export interface TeacherProbe {
  readonly scorer: TeacherScorer;
  readonly teacher: Teacher;
  readonly info: TeacherInfo;
  /** The student's. */
  readonly tokenizer: Tokenizer;
  /** The fingerprint of TEACHER_TOKENIZER, or null where it is not set. */
  readonly fingerprint: string | null;
}

/**
 * Passes where the teacher's vocabulary is the student's and it tells K logprobs of a known sequence. Else the start must
 * stop: `vocabulary_mismatch` says what to do, `teacher_failed` what the teacher did.
 */
export async function probeTeacher(probe: TeacherProbe, signal: AbortSignal): Promise<void> {
  const { scorer, teacher, info, tokenizer, fingerprint } = probe;
  if (fingerprint !== null && fingerprint !== tokenizer.fingerprint) {
    throw mismatch("TEACHER_TOKENIZER has another vocabulary than TOKENIZER");
  }
  const own = tokenizer.encode(PROBE_TEXT);
  const theirs = await teacher.tokenize(PROBE_TEXT, signal);
  if (theirs === null) {
    if (fingerprint === null) {
      throw mismatch(
        `The teacher${
          info.modelPath === null ? "" : ` ${info.modelPath}`
        } does not tokenize, so that its vocabulary is ` +
          "not known: set TEACHER_TOKENIZER to its tokenizer's folder, URL or hub id",
      );
    }
  } else if (theirs.length !== own.length || theirs.some((id, at) => id !== own[at])) {
    throw mismatch("The teacher makes other tokens of a text than the student does");
  }
  await scorer.score({
    prompt: own.subarray(0, 1),
    response: own.subarray(1),
    topK: Math.min(scorer.options.defaultTopK, tokenizer.vocabSize),
    tokenIds: new Uint32Array(0),
    mask: null,
  }, signal);
}

function mismatch(what: string): VerbatimError {
  return new VerbatimError(
    "vocabulary_mismatch",
    `${what}. Scores are told by token id: the teacher must have the student's vocabulary (TEACHER_SGLANG_URL, TOKENIZER)`,
  );
}
