/** A worker that gives up, lies and changes its framing as it likes: whatever is taken of it is what it sampled there. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { createFakeClock } from "../../../tests/fixtures/fake_clock.ts";
import { createListLogger } from "../../../tests/fixtures/list_logger.ts";
import { createScriptedFetch } from "../../../tests/fixtures/scripted_fetch.ts";
import { TokenSeries } from "../../core/token_series.ts";
import { EngineGate } from "../../services/engines/engine_gate.ts";
import { type GenerationChunk, Generations } from "../../services/engines/resume_generation.ts";
import { createTrackedBackground } from "../tracked_background.ts";
import { createSglangEngine } from "./sglang_engine.ts";
import { SglangWorkers } from "./sglang_workers.ts";

const VOCAB_SIZE = 97;
const WORKER = "http://engine";
const PROMPT = [3, 1, 4];
const never = new AbortController().signal;

/** The id after a prefix and its logprob, as this worker samples under some weights. */
function nextOf(prefix: readonly number[], version: string): { readonly id: number; readonly logprob: number } {
  let hash = version.length * 31 + Number(version);
  for (const id of prefix) hash = (Math.imul(hash, 31) + id + 7) >>> 0;
  return { id: hash % VOCAB_SIZE, logprob: -(hash % 1000) / 1000 };
}

/** How one call goes. */
interface Plan {
  /** Tokens of each frame. */
  readonly frames: readonly number[];
  readonly framing: "incremental" | "cumulative";
  /** What the last frame of a call that is given up holds. */
  readonly lie: "nothing" | "half" | "twice" | "other id" | "other count" | "no logprobs" | "no count" | "truth";
  readonly ends: "abort" | "length";
  /** Whether frames say which weights there are. */
  readonly names: boolean;
  /** Whether the weights are others from the next call on. */
  readonly updates: boolean;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  frames: fc.array(fc.nat(4), { maxLength: 4 }),
  framing: fc.constantFrom("incremental", "cumulative"),
  lie: fc.constantFrom("nothing", "half", "twice", "other id", "other count", "no logprobs", "no count", "truth"),
  ends: fc.constantFrom("abort", "abort", "length"),
  names: fc.boolean(),
  updates: fc.boolean(),
});

interface Body {
  readonly input_ids: number[];
  readonly stream: boolean;
  readonly sampling_params: { readonly max_new_tokens: number };
}

/** The frames of a call; the last is the whole of one that does not stream. */
function play({ input_ids: input, sampling_params, stream }: Body, plan: Plan, version: string): unknown[] {
  const most = sampling_params.max_new_tokens;
  const ids: number[] = [];
  const pairs: [number, number, null][] = [];
  const frames: unknown[] = [];
  const frame = (from: number, finish: unknown, changes: Record<string, unknown> = {}, own = ids, entries = pairs) => {
    const at = plan.framing === "cumulative" || !stream ? 0 : from;
    frames.push({
      output_ids: own.slice(at),
      meta_info: {
        finish_reason: finish,
        prompt_tokens: input.length,
        completion_tokens: ids.length,
        ...(plan.names ? { weight_version: version } : {}),
        output_token_logprobs: entries.slice(at),
        ...changes,
      },
    });
  };
  const sample = (count: number): void => {
    for (let k = 0; k < count && ids.length < most; k++) {
      const { id, logprob } = nextOf([...input, ...ids], version);
      ids.push(id);
      pairs.push([logprob, id, null]);
    }
  };
  for (const count of plan.frames) {
    const from = ids.length;
    sample(count);
    if (ids.length > from) frame(from, null);
  }
  const from = ids.length;
  if (plan.ends === "length") {
    sample(most);
    frame(from, { type: "length" });
    return frames;
  }
  const abort = { type: "abort", message: "given up" };
  sample(2);
  switch (plan.lie) {
    case "truth":
      frame(from, abort);
      break;
    case "nothing":
      frame(from, abort, {}, [], []);
      break;
    case "half":
      frame(from, abort, {}, ids.slice(0, -1), pairs.slice(0, -1));
      break;
    case "twice":
      frame(from, abort, {}, [...ids, ...ids.slice(from)], [...pairs, ...pairs.slice(from)]);
      break;
    case "other id":
      frame(from, abort, {}, ids.map((id, k) => k < from ? id : (id + 1) % VOCAB_SIZE));
      break;
    case "other count":
      frame(from, abort, { completion_tokens: ids.length + 1 });
      break;
    case "no logprobs":
      frame(from, abort, { output_token_logprobs: undefined });
      break;
    case "no count":
      frame(from, abort, { completion_tokens: undefined });
      break;
  }
  return frames;
}

/** What a call without a plan does. */
const TO_THE_END: Plan = {
  frames: [1],
  framing: "incremental",
  lie: "truth",
  ends: "length",
  names: true,
  updates: false,
};

interface Played {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly end: Extract<GenerationChunk, { type: "end" }>;
  /** How often weights came. */
  readonly versions: number;
}

/** Runs a generation on this worker, which must end and leave no place taken. */
async function generate(
  plans: readonly Plan[],
  { most, stream }: { readonly most: number; readonly stream: boolean },
): Promise<Played> {
  const clock = createFakeClock();
  const logger = createListLogger();
  let [calls, version] = [0, 1];
  const { fetch } = createScriptedFetch(({ url, body: sent }) => {
    if (!url.endsWith("/generate")) return new Response(null);
    const body: Body = JSON.parse(sent);
    const plan = plans[calls++] ?? TO_THE_END;
    const frames = play(body, plan, String(version));
    if (plan.updates) version++;
    if (!body.stream) return Response.json(frames.at(-1));
    return new Response(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("") + "data: [DONE]\n\n");
  });
  const workers = new SglangWorkers({ place: { type: "workers", urls: [WORKER] }, clock, fetch });
  workers.versions.note(WORKER, "1");
  const engine = createSglangEngine({
    workers,
    vocabSize: VOCAB_SIZE,
    retryMs: 0,
    idleTimeoutMs: 60_000,
    clock,
    logger,
    background: createTrackedBackground(logger),
    random: () => 0.5,
  });
  const gate = new EngineGate({ mostRunning: 1, mostWaiting: 0, clock });
  const generations = new Generations({ gate, clock, logger, retryMs: 60_000 });
  const chunks: GenerationChunk[] = [];
  const run = async (): Promise<void> => {
    const request = {
      engine,
      rid: "0123456789abcdef0123456789abcdef",
      input: TokenSeries.of(Uint32Array.from(PROMPT)),
      sampling: { max_new_tokens: most },
      routingKey: null,
      stream,
      fairKey: "task",
      onAbort: "resume",
      decode: () => "",
    } as const;
    for await (const chunk of generations.run(request, never)) chunks.push(chunk);
  };
  let over = false;
  const running = run().finally(() => over = true);
  for (let step = 0; !over && step < 1000; step++) await clock.advance(500);
  assert.ok(over, "it ends");
  await running;
  assert.deepEqual([gate.running, gate.waiting, workers.pool.standing(WORKER)?.inFlight], [0, 0, 0]);
  const end = chunks.at(-1);
  assert.ok(end?.type === "end");
  const tokens = chunks.filter((chunk) => chunk.type === "tokens");
  return {
    ids: tokens.flatMap((chunk) => chunk.ids),
    logprobs: tokens.flatMap((chunk) => chunk.logprobs),
    end,
    versions: version,
  };
}

Deno.test("a generation on a worker that gives up, lies and changes is token by token what that worker samples", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(plan, { maxLength: 8 }),
      fc.integer({ min: 1, max: 24 }),
      fc.boolean(),
      async (plans, most, stream) => {
        const { ids, logprobs, end: { weightVersions }, versions } = await generate(plans, { most, stream });
        assert.equal(ids.length, most);
        assert.equal(weightVersions.reduce((at, { start, end }) => start === at ? end : NaN, 0), most);
        for (const { version, start, end, exact } of weightVersions) {
          assert.ok(version !== null || !exact);
          const named = version === null ? Array.from({ length: versions }, (_, k) => String(k + 1)) : [version];
          for (let at = start; at < end; at++) {
            const sampled = named.map((one) => nextOf([...PROMPT, ...ids.slice(0, at)], one));
            assert.ok(sampled.some(({ id, logprob }) => id === ids[at] && logprob === logprobs[at]), `position ${at}`);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
});
