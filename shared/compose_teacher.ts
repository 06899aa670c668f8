/** The teacher from the environment: engine, limits, and the probe that it is the one. Shared by the compositions. */

import { createHfTokenizer } from "./adapters/tokenizer/hf_tokenizer.ts";
import { loadTokenizerFiles, type TokenizerFiles } from "./adapters/tokenizer/load_tokenizer_files.ts";
import { withSamplingTrials } from "./adapters/sglang/sampling_trial.ts";
import { createSglangControl } from "./adapters/sglang/sglang_control.ts";
import { createSglangEngine } from "./adapters/sglang/sglang_engine.ts";
import { createSglangTeacher } from "./adapters/sglang/sglang_teacher.ts";
import { SglangWorkers } from "./adapters/sglang/sglang_workers.ts";
import { composeGenerations } from "./compose_model.ts";
import { VerbatimError } from "./core/errors.ts";
import type { Background } from "./ports/background.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Logger } from "./ports/logger.ts";
import type { TeacherInfo } from "./ports/teacher.ts";
import type { Renderer } from "./ports/renderer.ts";
import type { Tokenizer } from "./ports/tokenizer.ts";
import { createCompletionParser } from "./rendering/create_completion_parser.ts";
import { createRenderer } from "./rendering/create_renderer.ts";
import type { Environment } from "./schemas/environment.ts";
import { TeacherLabeller } from "./services/teacher/label_turn.ts";
import { probeTeacher } from "./services/teacher/probe_teacher.ts";
import { TeacherScorer } from "./services/teacher/score_with_teacher.ts";

/** How long the teacher may take for one answer while we start, but for a score. */
const STARTUP_CALL_MS = 10_000;

/** What a teacher is made with. */
export interface TeacherParts {
  /** The student's. */
  readonly tokenizer: Tokenizer;
  /** The student's files, where its tokenizer was made from files. */
  readonly student: Pick<TokenizerFiles, "chatTemplate" | "stopTokenIds"> | null;
  /** The student's: the teacher's too where nothing is said of the teacher's format. */
  readonly renderer: Renderer;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly background: Background;
}

/** The teacher as scorer and as labeller. */
export interface ComposedTeacher {
  readonly scorer: TeacherScorer;
  readonly labeller: TeacherLabeller;
}

/** The teacher, probed; null where none is configured. A teacher that is not there, or is another one, stops the start. */
export async function composeTeacher(environment: Environment, parts: TeacherParts): Promise<ComposedTeacher | null> {
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
  const files = environment.TEACHER_TOKENIZER === undefined
    ? null
    : await loadTokenizerFiles(environment.TEACHER_TOKENIZER);
  const fingerprint = files === null ? null : fingerprintOf(files);
  await probeTeacher({ scorer, teacher, info, tokenizer, fingerprint }, new AbortController().signal);
  logger.info("The teacher was probed", { url, model: info.modelPath, weight_version: info.weightVersion });
  const workers = new SglangWorkers({ place: { type: "router", url }, apiKey: environment.TEACHER_API_KEY, clock });
  const model = {
    name: scorer.options.model,
    renderer: files === null && environment.TEACHER_FORMAT === "auto" ? parts.renderer : createRenderer({
      tokenizer,
      toolCallParser: environment.TEACHER_FORMAT,
      reasoningParser: "auto",
      createParser: createCompletionParser,
      now: () => clock.now(),
      ...templateOf(files, parts.student),
    }),
    engine: withSamplingTrials(
      createSglangEngine({
        workers,
        vocabSize: options.vocabSize,
        retryMs: environment.ENGINE_RETRY_S * 1000,
        idleTimeoutMs: options.idleTimeoutMs,
        clock,
        logger,
        background,
        random: Math.random,
      }),
      { tokenizer, clock, newRid: () => ids.uuid() },
    ),
    control: createSglangControl({ workers, logger }),
    generations: composeGenerations(environment, { clock, logger }),
    maxContextTokens,
    createdAtS: Math.floor(clock.now() / 1000),
  };
  const { TEACHER_TEMPERATURE: temperature, TEACHER_TOP_P: topP } = environment;
  return { scorer, labeller: new TeacherLabeller({ model, temperature, topP, ids }) };
}

/** The teacher's own template and stops where its files are known; else the student's files, else the tokenizer's own. */
function templateOf(
  files: TeacherParts["student"],
  student: TeacherParts["student"],
): { chatTemplate?: string; stopTokenIds?: readonly number[] } {
  const known = files ?? student;
  if (known === null) return {};
  return {
    stopTokenIds: known.stopTokenIds,
    ...(known.chatTemplate === null ? {} : { chatTemplate: known.chatTemplate }),
  };
}

async function firstAnswer(url: string, ask: (signal: AbortSignal) => Promise<TeacherInfo>): Promise<TeacherInfo> {
  try {
    return await ask(AbortSignal.timeout(STARTUP_CALL_MS));
  } catch (cause) {
    throw new VerbatimError("teacher_failed", `The teacher at TEACHER_SGLANG_URL ${url} does not answer`, { cause });
  }
}

/** What decides the ids of a tokenizer; the tokenizer is not kept, since it must be the student's, which is there already. */
function fingerprintOf(files: TokenizerFiles): string {
  const tokenizer = createHfTokenizer(files, { worker: "none" });
  const { fingerprint } = tokenizer;
  tokenizer.close();
  return fingerprint;
}
