import assert from "node:assert/strict";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { Teacher, TeacherScoreRequest, TeacherScores } from "../../ports/teacher.ts";
import { TeacherScorer } from "./score_with_teacher.ts";

const INPUT = {
  prompt: Uint32Array.of(1),
  response: Uint32Array.of(2),
  topK: 0,
  tokenIds: new Uint32Array(0),
  mask: null,
};
const never = new AbortController().signal;

type Answer = (request: TeacherScoreRequest, signal: AbortSignal) => Promise<TeacherScores>;

function scorerOf(
  answer: Answer,
  options: { retries?: number; concurrency?: number; weightVersion?: undefined } = {},
): { scorer: TeacherScorer; clock: ReturnType<typeof createFakeClock>; rids: string[] } {
  const clock = createFakeClock();
  const rids: string[] = [];
  const teacher: Teacher = {
    score(request, signal) {
      rids.push(request.rid);
      return answer(request, signal);
    },
    info: () => Promise.reject(new Error("not asked")),
    tokenize: () => Promise.reject(new Error("not asked")),
  };
  let made = 0;
  const scorer = new TeacherScorer({
    teacher,
    model: "teacher",
    weightVersion: "1",
    vocabSize: 10,
    maxContextTokens: 8,
    defaultTopK: 2,
    retries: 2,
    baseDelayMs: 1000,
    concurrency: 2,
    clock,
    ids: { uuid: () => `rid-${made++}`, hex: () => "", ulid: () => "" },
    logger: createListLogger(),
    random: () => 0.5,
    ...options,
  });
  return { scorer, clock, rids };
}

function scores(weightVersion: string | null = "1"): TeacherScores {
  return {
    logprobs: Float64Array.of(-1),
    topkIndices: new Int32Array(0),
    topkLogprobs: new Float32Array(0),
    tokenIdsLogprobs: new Float32Array(0),
    weightVersion,
  };
}

function down(): VerbatimError {
  return new VerbatimError("engine_unavailable", "The teacher can't be reached");
}

Deno.test("TeacherScorer asks again after base times two to the attempt and an eighth of it, under an id of its own", async () => {
  let asked = 0;
  const { scorer, clock, rids } = scorerOf(() => ++asked < 3 ? Promise.reject(down()) : Promise.resolve(scores()));
  const scoring = scorer.score(INPUT, never);
  await clock.untilSleeping(1);
  await clock.advance(1124);
  assert.equal(asked, 1);
  await clock.advance(1);
  assert.equal(asked, 2);
  await clock.advance(2249);
  assert.equal(asked, 2);
  await clock.advance(1);
  assert.deepEqual((await scoring).logprobs, Float64Array.of(-1));
  assert.deepEqual(rids, ["rid-0", "rid-1", "rid-2"]);
});

Deno.test("TeacherScorer waits as long as the teacher asks for", async () => {
  let asked = 0;
  const busy = new VerbatimError("engine_unavailable", "Busy", { retryAfterS: 60 });
  const { scorer, clock } = scorerOf(() => ++asked < 2 ? Promise.reject(busy) : Promise.resolve(scores()));
  const scoring = scorer.score(INPUT, never);
  await clock.untilSleeping(1);
  await clock.advance(59_999);
  assert.equal(asked, 1);
  await clock.advance(1);
  await scoring;
});

Deno.test("TeacherScorer fails loudly once the retries are used up, and at once where no retry helps", async () => {
  const { scorer, clock } = scorerOf(() => Promise.reject(down()));
  const scoring = scorer.score(INPUT, never).then(() => null, (error: unknown) => error);
  await clock.untilSleeping(1);
  await clock.advance(100_000);
  const error = await scoring;
  assert.ok(error instanceof VerbatimError && error.code === "teacher_failed" && error.retryable);
  assert.deepEqual(error.details, { attempts: 3, cause: "engine_unavailable" });

  const refusing = scorerOf(() =>
    Promise.reject(
      new VerbatimError("engine_failed", "Refused", { retryable: false, details: { engine_status: 400 } }),
    )
  );
  await assert.rejects(refusing.scorer.score(INPUT, never), {
    code: "teacher_failed",
    retryable: false,
    details: { engine_status: 400, attempts: 1, cause: "engine_failed" },
  });
});

Deno.test("TeacherScorer takes no scores of other weights than the teacher had", async () => {
  let asked = 0;
  const { scorer, clock } = scorerOf(() => Promise.resolve(scores(asked++ === 0 ? "2" : "1")));
  const scoring = scorer.score(INPUT, never);
  await clock.untilSleeping(1);
  await clock.advance(10_000);
  await scoring;
  const { scorer: other } = scorerOf(() => Promise.resolve(scores(null)), { retries: 0 });
  await assert.rejects(other.score(INPUT, never), { code: "teacher_failed", message: /null.*had 1/ });
});

Deno.test("TeacherScorer takes the weights of its first scores for the teacher's where it is not told", async () => {
  let version: string | null = null;
  const { scorer } = scorerOf(() => Promise.resolve(scores(version)), { retries: 0, weightVersion: undefined });
  await scorer.score(INPUT, never);
  assert.deepEqual([scorer.name, scorer.identity.weight_version], ["teacher@", null]);
  version = "2";
  await assert.rejects(scorer.score(INPUT, never), { code: "teacher_failed" });
});

Deno.test("TeacherScorer scores only so many at once, and gives places on whatever becomes of the work", async () => {
  const running: PromiseWithResolvers<TeacherScores>[] = [];
  const { scorer } = scorerOf(() => {
    const work = Promise.withResolvers<TeacherScores>();
    running.push(work);
    return work.promise;
  }, { retries: 0 });
  const gone = new AbortController();
  const first = scorer.score(INPUT, never);
  const second = scorer.score(INPUT, never).catch((error: VerbatimError) => error.code);
  const third = scorer.score(INPUT, gone.signal).catch(() => "gone");
  const fourth = scorer.score(INPUT, never);
  await Promise.resolve();
  assert.equal(running.length, 2);
  gone.abort(new Error("gone"));
  assert.equal(await third, "gone");
  running[1]!.reject(down());
  assert.equal(await second, "teacher_failed");
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(running.length, 3);
  running[0]!.resolve(scores());
  running[2]!.resolve(scores());
  await Promise.all([first, fourth]);
});

Deno.test("TeacherScorer refuses what is longer than the teacher's context", async () => {
  const { scorer, rids } = scorerOf(() => Promise.resolve(scores()));
  const tooLong = scorer.score({ ...INPUT, response: new Uint32Array(8) }, never);
  await assert.rejects(tooLong, { code: "context_length_exceeded", details: { tokens: 9, limit: 8 } });
  assert.deepEqual(rids, []);
});
