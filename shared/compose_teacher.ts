/** The teacher from the environment: engine, limits, and the probe that it is the one. Shared by the compositions. */

import { describeHfFiles } from "./adapters/hf_files.ts";
import { hfFingerprint } from "./adapters/hf_fingerprint.ts";
import { loadTokenizerFiles } from "./adapters/load_tokenizer_files.ts";
import { createSglangTeacher } from "./adapters/sglang_teacher.ts";
import { VerbatimError } from "./core/errors.ts";
import type { Background } from "./ports/background.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Logger } from "./ports/logger.ts";
import type { TeacherInfo } from "./ports/teacher.ts";
import type { Tokenizer } from "./ports/tokenizer.ts";
import type { Environment } from "./schemas/environment.ts";
import { probeTeacher } from "./services/probe_teacher.ts";
import { TeacherScorer } from "./services/score_with_teacher.ts";

/** How long the teacher may take for one answer while we start, but for a score. */
const STARTUP_CALL_MS = 10_000;

/** What a teacher is made with. */
export interface TeacherParts {
  /** The student's. */
  readonly tokenizer: Tokenizer;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly background: Background;
}

/** The teacher, probed; null where none is configured. A teacher that is not there, or is another one, stops the start. */
export async function composeTeacher(environment: Environment, parts: TeacherParts): Promise<TeacherScorer | null> {
  const { TEACHER_SGLANG_URL: url, MAX_CONTEXT_LEN: studentContext } = environment;
  if (url === undefined) return null;
  const { tokenizer, clock, ids, logger, background } = parts;
  const options = {
    url,
    apiKey: environment.TEACHER_API_KEY,
    vocabSize: tokenizer.vocabSize,
    idleTimeoutMs: environment.ENGINE_IDLE_TIMEOUT_S * 1000,
    clock,
    logger,
    background,
  };
  const info = await firstAnswer(url, (signal) => {
    return createSglangTeacher({ ...options, maxContextTokens: studentContext }).info(signal);
  });
  const maxContextTokens = info.maxContextTokens ?? studentContext;
  const teacher = createSglangTeacher({ ...options, maxContextTokens });
  const scorer = new TeacherScorer({
    teacher,
    model: info.modelPath ?? "teacher",
    weightVersion: info.weightVersion,
    vocabSize: tokenizer.vocabSize,
    maxContextTokens,
    defaultTopK: environment.DISTILL_TOPK,
    retries: environment.DISTILL_TEACHER_RETRIES,
    baseDelayMs: environment.DISTILL_TEACHER_BASE_DELAY * 1000,
    concurrency: environment.DISTILL_TEACHER_CONCURRENCY,
    clock,
    ids,
    logger,
    random: Math.random,
  });
  const fingerprint = await fingerprintOf(environment.TEACHER_TOKENIZER);
  await probeTeacher({ scorer, teacher, info, tokenizer, fingerprint }, new AbortController().signal);
  logger.info("The teacher was probed", { url, model: info.modelPath, weight_version: info.weightVersion });
  return scorer;
}

async function firstAnswer(url: string, ask: (signal: AbortSignal) => Promise<TeacherInfo>): Promise<TeacherInfo> {
  try {
    return await ask(AbortSignal.timeout(STARTUP_CALL_MS));
  } catch (cause) {
    throw new VerbatimError("teacher_failed", `The teacher at TEACHER_SGLANG_URL ${url} does not answer`, { cause });
  }
}

/** What decides the ids of the teacher's tokenizer; the tokenizer itself is not kept, since it must be the student's. */
async function fingerprintOf(location: string | undefined): Promise<string | null> {
  return location === undefined ? null : hfFingerprint(describeHfFiles(await loadTokenizerFiles(location)));
}
