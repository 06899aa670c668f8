/** The teacher's adapter against the embedded engine: its scores are the engine's distribution, and no planted fault goes unseen. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { byteTokenizer } from "../fixtures/byte_tokenizer.ts";
import { createListLogger } from "../fixtures/list_logger.ts";
import { type Random, seededRandom } from "../fixtures/seeded_random.ts";
import { candidatePool } from "../../shared/engine/candidate_pool.ts";
import { createEmbeddedEngine, type EmbeddedEngine } from "../../shared/engine/embedded_engine.ts";
import { LanguageModel } from "../../shared/engine/language_model.ts";
import { ModelPredictor } from "../../shared/engine/predictor.ts";
import { PrefixState } from "../../shared/engine/prefix_state.ts";
import type { Teacher, TeacherScores } from "../../shared/ports/teacher.ts";
import { type ScoreInput, TeacherScorer } from "../../shared/services/teacher/score_with_teacher.ts";
import { createRandomIds } from "../../shared/adapters/random_ids.ts";
import { createSglangTeacher } from "../../shared/adapters/sglang/sglang_teacher.ts";
import { systemClock } from "../../shared/adapters/system_clock.ts";
import { createTrackedBackground } from "../../shared/adapters/tracked_background.ts";

const tokenizer = byteTokenizer();
const { vocabSize } = tokenizer;
const SEED = 11;
const CONTEXT = 48;
const STOP = 10;
const TRIPLES = 10_000;
const never = new AbortController().signal;

/** Answers a request to /generate: the engine itself, or something that stands between. */
type Between = (answer: () => Promise<Response>, attempt: number) => Response | Promise<Response>;

/** An engine that gives top lists flat, or one that does not know how. */
function engineOf({ flat }: { flat: boolean }): EmbeddedEngine {
  return createEmbeddedEngine({
    flatTopLogprobs: flat,
    tokenizer,
    modelName: "teacher",
    maxContextTokens: CONTEXT,
    seed: SEED,
    stopIds: [STOP],
    generationPrompt: "",
    generationPromptSuffixes: [],
  });
}

function teacherOf(engine: EmbeddedEngine, options: { between?: Between; idleTimeoutMs?: number } = {}): Teacher {
  const logger = createListLogger();
  let attempts = 0;
  return createSglangTeacher({
    url: "http://teacher",
    vocabSize,
    maxContextTokens: CONTEXT,
    idleTimeoutMs: options.idleTimeoutMs ?? 60_000,
    clock: systemClock,
    logger,
    background: createTrackedBackground(logger),
    async fetch(input, init) {
      const request = new Request(input, init);
      const answer = async () => await engine.app.request(request);
      const { between } = options;
      if (between === undefined || !request.url.endsWith("/generate")) return await answer();
      const aborted = new Promise<never>((_, reject) => {
        request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true });
      });
      return await Promise.race([between(answer, attempts++), aborted]);
    },
  });
}

const model = new LanguageModel({
  vocabSize,
  seed: SEED,
  stopId: STOP,
  pool: candidatePool(tokenizer).filter((id) => id !== STOP),
});

/** The engine's own distribution, asked of its model and not of its routes. */
function distribution(ids: Uint32Array, visit: (at: number, predictor: ModelPredictor) => void): void {
  const marks = { stopIds: new Set([STOP]), generationPrompt: new Uint32Array(0), suffixes: [] };
  const predictor = new ModelPredictor(model, new PrefixState(marks, { script: null, capacity: ids.length }));
  for (const [at, id] of ids.entries()) {
    predictor.predict(1, null);
    visit(at, predictor);
    predictor.push(id);
  }
}

function randomInput(random: Random): ScoreInput {
  const ids = (length: number) => Uint32Array.from({ length }, () => random.integer(vocabSize));
  // Now and then the context is full to its last token.
  const responseLength = random.chance(0.05) ? 1 + random.integer(CONTEXT - 1) : 1 + random.integer(5);
  const isFull = random.chance(0.03);
  const promptLength = isFull ? CONTEXT - responseLength : 1 + random.integer(Math.min(8, CONTEXT - responseLength));
  return {
    prompt: ids(promptLength),
    response: ids(responseLength),
    topK: random.pick([0, 1, 2, 3, 5, 8, 20, 40]),
    tokenIds: random.chance(0.3) ? ids(1 + random.integer(3)) : new Uint32Array(0),
    mask: random.chance(0.3) ? Uint8Array.from({ length: responseLength }, () => random.integer(2)) : null,
  };
}

Deno.test(`Teacher scores equal the engine's distribution for ${TRIPLES} random prompts, responses and K`, async () => {
  const random = seededRandom(5);
  const teachers = [true, false].map((flat) => teacherOf(engineOf({ flat })));
  let lasts = 0;
  for (let triple = 0; triple < TRIPLES; triple++) {
    const input = randomInput(random);
    const { prompt, response, topK, tokenIds, mask } = input;
    const scores = await teachers[triple % 2]!.score({ ...input, rid: `triple-${triple}` }, never);
    let kept = 0;
    distribution(Uint32Array.of(...prompt, ...response), (at, predictor) => {
      const k = at - prompt.length;
      if (k < 0 || mask?.[k] === 0) return;
      near(scores.logprobs[kept]!, predictor.logprob(response[k]!), `${triple}: token ${k}`);
      for (const [rank, [logprob, id]] of predictor.top(topK).entries()) {
        near(scores.topkLogprobs[kept * topK + rank]!, logprob, `${triple}: top ${rank} of ${k}`);
        assert.equal(scores.topkIndices[kept * topK + rank], id, `${triple}: top ${rank} of ${k}`);
      }
      for (const [n, id] of tokenIds.entries()) {
        near(
          scores.tokenIdsLogprobs[kept * tokenIds.length + n]!,
          predictor.logprob(id),
          `${triple}: id ${id} at ${k}`,
        );
      }
      kept++;
      if (k === response.length - 1) lasts++;
    });
    assert.deepEqual(
      [scores.logprobs.length, scores.topkIndices.length, scores.topkLogprobs.length, scores.tokenIdsLogprobs.length],
      [kept, kept * topK, kept * topK, kept * tokenIds.length],
    );
  }
  assert.ok(lasts > TRIPLES / 2);
});

function near(found: number, expected: number, what: string): void {
  assert.ok(Math.abs(found - expected) <= 1e-6, `${what}: ${found}, not ${expected}`);
}

const INPUT: ScoreInput = {
  prompt: Uint32Array.of(40, 41, 42),
  response: Uint32Array.of(50, 51, 52, 53),
  topK: 4,
  tokenIds: Uint32Array.of(60),
  mask: null,
};

// deno-lint-ignore no-explicit-any -- faults are planted wherever a reply has something
type Meta = any;

/** A reply whose meta_info was tampered with. */
function tampered(change: (meta: Meta) => void): Between {
  return async (answer) => {
    const reply = await (await answer()).json();
    change(reply.meta_info);
    return Response.json(reply);
  };
}

/** A reply whose text was tampered with. */
function rewritten(change: (text: string) => string): Between {
  return async (answer) => new Response(change(await (await answer()).text()));
}

/** Only the first attempt is hit. */
function once(fault: Between): Between {
  return (answer, attempt) => attempt === 0 ? fault(answer, attempt) : answer();
}

function brokenOff(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"meta_info":{"input_token_logprobs":[[null,42,null],[-1'));
      controller.error(new TypeError("connection reset"));
    },
  });
}

/** Faults that a teacher may have, and what the last attempt is to say of each. */
const FAULTS: readonly [name: string, fault: Between, cause: string, details?: Record<string, unknown>][] = [
  ["a list one short", tampered((meta) => meta.input_token_logprobs.pop()), "engine_inconsistent", { position: 4 }],
  ["a list one long", tampered((meta) => meta.input_token_logprobs.push([-1, 9, null])), "engine_inconsistent", {
    position: 5,
  }],
  ["a list that begins a token late", tampered((meta) => meta.input_token_logprobs.shift()), "engine_inconsistent", {
    position: 0,
  }],
  ["no list", tampered((meta) => delete meta.input_token_logprobs), "engine_inconsistent"],
  ["a wrong id", tampered((meta) => meta.input_token_logprobs[3][1] = 99), "engine_inconsistent", { position: 3 }],
  ["null inside", tampered((meta) => meta.input_token_logprobs[2][0] = null), "engine_inconsistent", { position: 2 }],
  ["a logprob where none can be", tampered((meta) => meta.input_token_logprobs[0][0] = -1), "engine_inconsistent", {
    position: 0,
  }],
  ["the bare word NaN", rewritten((text) => text.replace(/\[-[\d.]+,51/, "[NaN,51")), "engine_inconsistent"],
  ["a number beyond float32", tampered((meta) => meta.input_top_logprobs[1][3][0] = -1e300), "engine_inconsistent", {
    position: 1,
  }],
  ["K - 1 entries", tampered((meta) => meta.input_top_logprobs[4].pop()), "engine_inconsistent", { position: 4 }],
  ["K + 1 entries", tampered((meta) => meta.input_top_logprobs[2].push([-99, 9, null])), "engine_inconsistent", {
    position: 2,
  }],
  ["a top list unsorted", tampered((meta) => meta.input_top_logprobs[3].reverse()), "engine_inconsistent", {
    position: 3,
  }],
  [
    "a top list that names an id twice",
    tampered((meta) => meta.input_top_logprobs[1][1][1] = meta.input_top_logprobs[1][0][1]),
    "engine_inconsistent",
    { position: 1 },
  ],
  ["top lists that end early", tampered((meta) => meta.input_top_logprobs.pop()), "engine_inconsistent", {
    position: 4,
  }],
  ["a top list that is null", tampered((meta) => meta.input_top_logprobs[2] = null), "engine_inconsistent", {
    position: 2,
  }],
  [
    "a top list that tells another logprob of the token",
    tampered((meta) => meta.input_top_logprobs[2][0][1] = 51),
    "engine_inconsistent",
    { position: 2 },
  ],
  [
    "another id than asked for",
    tampered((meta) => meta.input_token_ids_logprobs[1][0][1] = 61),
    "engine_inconsistent",
    { position: 1 },
  ],
  ["a wrong count", tampered((meta) => meta.prompt_tokens = 6), "engine_inconsistent"],
  ["other weights", tampered((meta) => meta.weight_version = "2"), "engine_inconsistent", { weight_version: "2" }],
  ["a reply cut off", rewritten((text) => text.slice(0, text.length / 2)), "engine_inconsistent"],
  ["a connection cut off", () => new Response(brokenOff()), "engine_unavailable"],
  ["dead", () => Promise.reject(new TypeError("connection refused")), "engine_unavailable"],
  ["500", () => new Response("Internal Server Error", { status: 500 }), "engine_failed", { engine_status: 500 }],
  ["503 without a word", () => new Response(null, { status: 503 }), "engine_unavailable", { engine_status: 503 }],
  ["aborted", tampered((meta) => meta.finish_reason = { type: "abort", message: "Aborted" }), "engine_failed", {
    aborted: true,
  }],
  ["no JSON", () => new Response("<html>"), "engine_inconsistent"],
  ["silent", () => new Promise<Response>(() => {}), "engine_timeout"],
];

/** Changes one of a flat text's 32-bit words. */
function withWord(text: string, at: number, change: (view: DataView, at: number) => void): string {
  const bytes = Buffer.from(text, "base64");
  change(new DataView(bytes.buffer, bytes.byteOffset), at * 4);
  return bytes.toString("base64");
}

const VALUES = "input_top_logprobs_val_flat_b64";
const IDS = "input_top_logprobs_idx_flat_b64";

/** The same of flat top lists; rows are of four entries. */
const FLAT_FAULTS: typeof FAULTS = [
  ["a flat list that ends early", tampered((meta) => meta[VALUES] = meta[VALUES].slice(0, 64)), "engine_inconsistent", {
    position: 4,
  }],
  ["ids that end early", tampered((meta) => meta[IDS] = meta[IDS].slice(0, 64)), "engine_inconsistent", {
    position: 4,
  }],
  ["a flat list too long", tampered((meta) => meta[IDS] = "AAAA".repeat(4) + meta[IDS]), "engine_inconsistent"],
  [
    "a flat NaN",
    tampered((meta) => meta[VALUES] = withWord(meta[VALUES], 5, (view, at) => view.setFloat32(at, NaN, true))),
    "engine_inconsistent",
    { position: 2 },
  ],
  [
    "a flat row unsorted",
    tampered((meta) => meta[VALUES] = withWord(meta[VALUES], 9, (view, at) => view.setFloat32(at, 0, true))),
    "engine_inconsistent",
    { position: 3 },
  ],
  [
    "a flat id beyond the vocabulary",
    tampered((meta) => meta[IDS] = withWord(meta[IDS], 3, (view, at) => view.setInt32(at, 1 << 20, true))),
    "engine_inconsistent",
    { position: 1 },
  ],
  [
    "a flat id below 0",
    tampered((meta) => meta[IDS] = withWord(meta[IDS], 15, (view, at) => view.setInt32(at, -1, true))),
    "engine_inconsistent",
    { position: 4 },
  ],
  [
    "a flat row that names an id twice",
    tampered((meta) =>
      meta[IDS] = withWord(meta[IDS], 1, (view, at) => view.setInt32(at, view.getInt32(0, true), true))
    ),
    "engine_inconsistent",
    { position: 1 },
  ],
  [
    "flat top lists that tell another logprob of the token",
    tampered((meta) => meta[IDS] = withWord(meta[IDS], 4, (view, at) => view.setInt32(at, 51, true))),
    "engine_inconsistent",
    { position: 2 },
  ],
  ["no flat values", tampered((meta) => delete meta[VALUES]), "engine_inconsistent", { position: 1 }],
  ["no flat ids", tampered((meta) => delete meta[IDS]), "engine_inconsistent", { position: 1 }],
  ["another shape", tampered((meta) => meta.input_top_logprobs_shape = [4, 5]), "engine_inconsistent"],
  ["no shape", tampered((meta) => delete meta.input_top_logprobs_shape), "engine_inconsistent"],
  ["no prefix", tampered((meta) => meta.input_top_logprobs_null_prefix = 0), "engine_inconsistent"],
  ["another type", tampered((meta) => meta[`${VALUES}_dtype`] = "float16"), "engine_inconsistent"],
  ["no base64", tampered((meta) => meta[VALUES] = `-${meta[VALUES].slice(1)}`), "engine_inconsistent"],
  ["a text with spaces", tampered((meta) => meta[IDS] = ` ${meta[IDS]}`), "engine_inconsistent"],
  ["flat and nested", tampered((meta) => meta.input_top_logprobs = [null]), "engine_inconsistent"],
];

function scorerOf(fault: Between, form: { flat: boolean }): TeacherScorer {
  return new TeacherScorer({
    teacher: teacherOf(engineOf(form), { between: fault, idleTimeoutMs: 20 }),
    model: "teacher",
    weightVersion: "default",
    vocabSize,
    maxContextTokens: CONTEXT,
    defaultTopK: 4,
    retries: 1,
    baseDelayMs: 0,
    concurrency: 1,
    clock: systemClock,
    ids: createRandomIds(systemClock),
    logger: createListLogger(),
    random: () => 0,
  });
}

const ALL_FAULTS = [
  ...FAULTS.map((fault) => ({ fault, flat: false })),
  ...FLAT_FAULTS.map((fault) => ({ fault, flat: true })),
];

for (const { fault: [name, fault, cause, details], flat } of ALL_FAULTS) {
  Deno.test(`Teacher that is ${name}: asked again, and a failure where that does not help`, async () => {
    const wanted = await teacherOf(engineOf({ flat })).score({ ...INPUT, rid: "wanted" }, never);
    const scores: TeacherScores = await scorerOf(once(fault), { flat }).score(INPUT, never);
    assert.deepEqual(scores, wanted);
    await assert.rejects(
      scorerOf(fault, { flat }).score(INPUT, never),
      (error: { code: string; details: Record<string, unknown> }) => {
        assert.equal(error.code, "teacher_failed");
        const { attempts, cause: last, ...rest } = error.details;
        assert.deepEqual([attempts, last], [2, cause]);
        for (const [field, value] of Object.entries(details ?? {})) assert.deepEqual(rest[field], value, field);
        return true;
      },
    );
  });
}

Deno.test("a teacher that refuses for good is not asked again", async () => {
  let asked = 0;
  const refusing: Between = () => {
    asked++;
    return Response.json({ error: { message: "too long" } }, { status: 400 });
  };
  await assert.rejects(scorerOf(refusing, { flat: true }).score(INPUT, never), {
    code: "teacher_failed",
    retryable: false,
    details: { engine_status: 400, engine_message: "too long", attempts: 1, cause: "engine_failed" },
  });
  assert.equal(asked, 1);
});

Deno.test("a teacher is asked for flat top lists, and is believed in every form it may give them", async () => {
  const wanted = await teacherOf(engineOf({ flat: false })).score({ ...INPUT, rid: "wanted" }, never);
  const asked: Record<string, unknown>[] = [];
  for (
    const change of [
      // The form's first version counted the prefix among the rows.
      (meta: Meta) => meta.input_top_logprobs_shape = [5, 4],
      (meta: Meta) => {
        delete meta[`${VALUES}_dtype`];
        delete meta[`${IDS}_dtype`];
      },
      (meta: Meta) => {
        const words = (name: string) => Buffer.from(meta[name], "base64");
        const [values, ids] = [words(VALUES), words(IDS)];
        meta.input_top_logprobs_val_flat = Array.from({ length: 16 }, (_, at) => values.readFloatLE(at * 4));
        meta.input_top_logprobs_idx_flat = Array.from({ length: 16 }, (_, at) => ids.readInt32LE(at * 4));
        for (const name of [VALUES, IDS]) delete meta[name];
      },
    ]
  ) {
    const teacher = teacherOf(engineOf({ flat: true }), {
      between: async (answer, attempt) => {
        const response = await tampered(change)(answer, attempt);
        asked.push((await response.clone().json()).meta_info);
        return response;
      },
    });
    assert.deepEqual(await teacher.score({ ...INPUT, rid: "other" }, never), wanted);
  }
  assert.ok(asked.every((meta) => !("input_top_logprobs" in meta)));
});
