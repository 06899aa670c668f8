import assert from "node:assert/strict";
import fc from "fast-check";
import type { EngineChunk } from "../ports/engine.ts";
import { RetryableFailure } from "./sglang_failure.ts";
import { ReplyReader } from "./sglang_reply.ts";

const VOCAB_SIZE = 1000;
const EXPECTED = { promptTokens: 4, vocabSize: VOCAB_SIZE, maxNewTokens: 50 };

interface Token {
  readonly id: number;
  readonly logprob: number;
}

const token: fc.Arbitrary<Token> = fc.record({
  id: fc.nat(VOCAB_SIZE - 1),
  logprob: fc.double({ max: 0, noNaN: true, noDefaultInfinity: true }),
});
const tokens = fc.array(token, { minLength: 1, maxLength: 20 });

/** A reply that holds these tokens of so many sampled. */
function frame(own: readonly Token[], total: number | null, meta: Record<string, unknown> = {}): unknown {
  return {
    text: "",
    output_ids: own.map(({ id }) => id),
    meta_info: {
      finish_reason: null,
      prompt_tokens: 4,
      cached_tokens: 2,
      weight_version: "7",
      ...(total === null ? {} : { completion_tokens: total }),
      output_token_logprobs: own.map(({ id, logprob }) => [logprob, id, null]),
      ...meta,
    },
  };
}

const LENGTH = { finish_reason: { type: "length", length: 50 } };

/** The frames of these tokens, ends at these places, the last one with the finish. */
function framesOf(all: readonly Token[], cuts: readonly number[], incremental: boolean): unknown[] {
  const ends = [...cuts.map((cut) => cut % (all.length + 1)), all.length].sort((a, b) => a - b);
  return ends.map((end, k) =>
    frame(all.slice(incremental ? ends[k - 1] ?? 0 : 0, end), end, k === ends.length - 1 ? LENGTH : {})
  );
}

function readAll(frames: readonly unknown[], expected = EXPECTED): EngineChunk[] {
  const reader = new ReplyReader(expected);
  return frames.flatMap((one) => reader.read(one));
}

const END: EngineChunk = {
  type: "end",
  finish: { type: "length" },
  promptTokens: 4,
  cachedTokens: 2,
  weightVersion: "7",
};

Deno.test("ReplyReader reads every token once, from whole replies, cumulative frames and deltas alike", () => {
  fc.assert(fc.property(tokens, fc.array(fc.nat(), { maxLength: 8 }), fc.boolean(), (all, cuts, incremental) => {
    const reader = new ReplyReader(EXPECTED);
    const chunks: EngineChunk[] = [];
    for (const one of framesOf(all, cuts, incremental)) {
      chunks.push(...reader.read(one));
      assert.equal(reader.ended, chunks.at(-1)?.type === "end");
    }
    assert.equal(reader.sampled, all.length);
    assert.deepEqual(chunks.pop(), END);
    assert.deepEqual(chunks.flatMap((chunk) => chunk.type === "tokens" ? chunk.ids : []), all.map(({ id }) => id));
    assert.deepEqual(
      chunks.flatMap((chunk) => chunk.type === "tokens" ? chunk.logprobs : []),
      all.map(({ logprob }) => logprob),
    );
    assert.ok(chunks.every((chunk) => chunk.type === "tokens" && chunk.ids.length > 0));
  }));
});

Deno.test("ReplyReader needs nothing that a whole reply may lack", () => {
  const whole = {
    output_ids: [5],
    meta_info: { finish_reason: { type: "stop", matched: null }, output_token_logprobs: [[-1, 5]] },
  };
  assert.deepEqual(readAll([whole]), [
    { type: "tokens", ids: [5], logprobs: [-1] },
    {
      type: "end",
      finish: { type: "stop", matched: null },
      promptTokens: null,
      cachedTokens: null,
      weightVersion: null,
    },
  ]);
  const nothing = { output_ids: [], meta_info: { finish_reason: { type: "length", length: 0 } } };
  assert.equal(readAll([nothing]).length, 1);
});

Deno.test("ReplyReader tells which frames named which weights where they changed under the request", () => {
  const all = pair(5, 9, 11, 13);
  const versionsOf = (versions: readonly unknown[], ends: readonly number[]) => {
    const frames = ends.map((end, k) =>
      frame(all.slice(0, end), end, { weight_version: versions[k], ...(k === ends.length - 1 ? LENGTH : {}) })
    );
    const end = readAll(frames).at(-1);
    return end?.type === "end" ? end.weightVersions : null;
  };
  assert.equal(versionsOf(["7", "7", "7"], [1, 3, 4]), undefined);
  assert.equal(versionsOf(["7", undefined, "7"], [1, 3, 4]), undefined);
  assert.deepEqual(versionsOf(["7", "7", "8"], [1, 3, 4]), [
    { version: "7", start: 0, end: 3, exact: false },
    { version: "8", start: 3, end: 4, exact: false },
  ]);
  // A last frame without tokens of its own: which tokens the new weights had a part in is not known.
  assert.deepEqual(versionsOf(["7", "8"], [4, 4]), [{ version: "7", start: 0, end: 4, exact: false }]);
});

Deno.test("ReplyReader gives what matched: the last token, or a stop string", () => {
  const stopped = (matched: unknown) =>
    readAll([frame(pair(5, 9), 2, { finish_reason: { type: "stop", matched } })]).at(-1);
  for (const matched of [9, "STOP", null]) {
    assert.deepEqual(stopped(matched), { ...END, finish: { type: "stop", matched } });
  }
  assert.deepEqual(stopped(undefined), { ...END, finish: { type: "stop", matched: null } });
});

function pair(...ids: number[]): Token[] {
  return ids.map((id) => ({ id, logprob: -0.5 }));
}

Deno.test("ReplyReader refuses every lie in a whole reply", () => {
  const end = { ...LENGTH };
  const stop = (matched: unknown) => ({ finish_reason: { type: "stop", matched } });
  const entries = (list: unknown) => ({ ...end, output_token_logprobs: list });
  const lies: Record<string, unknown> = {
    "no object": null,
    "a list": [frame(pair(5), 1, end)],
    "no output_ids": { meta_info: { ...end, output_token_logprobs: [] } },
    "ids that are no list": { output_ids: "5", meta_info: end },
    "no logprobs": frame(pair(5), 1, entries(undefined)),
    "null for logprobs": frame(pair(5), 1, entries(null)),
    "a logprob too few": frame(pair(5, 6), 2, entries([[-1, 5]])),
    "a logprob too many": frame(pair(5), 1, entries([[-1, 5], [-1, 6]])),
    "a logprob of another id": frame(pair(5, 6), 2, entries([[-1, 5], [-1, 7]])),
    "a logprob entry that is no list": frame(pair(5), 1, entries([{}])),
    "null for a logprob": frame(pair(5), 1, entries([[null, 5]])),
    "NaN for a logprob": frame(pair(5), 1, entries([[NaN, 5]])),
    "a logprob without end": frame(pair(5), 1, entries([[-Infinity, 5]])),
    "a text for a logprob": frame(pair(5), 1, entries([["-1", 5]])),
    "an id out of the vocabulary": frame(pair(VOCAB_SIZE), 1, end),
    "a negative id": frame(pair(-1), 1, end),
    "half an id": frame(pair(0.5), 1, end),
    "another number of prompt tokens": frame(pair(5), 1, { ...end, prompt_tokens: 5 }),
    "fewer tokens than it counts": frame(pair(5), 2, end),
    "more tokens than it counts": frame(pair(5, 6), 1, end),
    "more tokens than were asked for": frame(pair(...Array(51).fill(5)), 51, end),
    "a stop token that was not sampled last": frame(pair(5, 6), 2, stop(5)),
    "a stop token where nothing was sampled": frame([], 0, stop(5)),
    "NaN while sampling": frame(pair(5), 1, stop("NaN happened")),
    "an unknown finish": frame(pair(5), 1, { finish_reason: { type: "tired" } }),
  };
  for (const [what, lie] of Object.entries(lies)) {
    assert.throws(() => readAll([lie]), { code: "engine_inconsistent" }, what);
  }
});

Deno.test("ReplyReader refuses every lie between frames", () => {
  const lies: Record<string, unknown[]> = {
    "tokens taken back": [frame(pair(5, 6), 2), frame(pair(5, 6, 7), 3), frame(pair(5, 6), 2)],
    "the first frame's token changed": [frame(pair(5), 1), frame(pair(6, 7), 2)],
    "a later frame's token changed": [frame(pair(5), 1), frame(pair(5, 6), 2), frame(pair(5, 7, 8), 3)],
    "an early token changed at the end": [frame(pair(5), 1), frame(pair(5, 6), 2), frame(pair(9, 6, 7), 3, LENGTH)],
    "an early logprob changed at the end": [
      frame(pair(5), 1),
      frame(pair(5, 6), 2),
      frame([{ id: 5, logprob: -9 }, ...pair(6, 7)], 3, LENGTH),
    ],
    "a delta lost": [frame(pair(5), 1), frame(pair(6), 2), frame(pair(8), 4)],
    "a delta twice": [frame(pair(5), 1), frame(pair(6), 2), frame(pair(6), 2)],
    "a stream that counts nothing": [frame(pair(5), null), frame(pair(5), null)],
    "more tokens than were asked for": [frame(pair(...Array(50).fill(5)), 50), frame(pair(6), 51)],
    "something after its end": [frame(pair(5), 1, LENGTH), frame(pair(6), 2)],
    "a last frame again": [frame(pair(5), 1, LENGTH), frame(pair(5), 1, LENGTH)],
  };
  for (const [what, frames] of Object.entries(lies)) {
    assert.throws(() => readAll(frames), { code: "engine_inconsistent" }, what);
  }
});

Deno.test("ReplyReader does not read the ids of an aborted frame", () => {
  const finish_reason = { type: "abort", message: "Abort in waiting queue" };
  const queued = { output_ids: ["?"], meta_info: { finish_reason } };
  assert.throws(() => readAll([queued]), {
    code: "engine_failed",
    details: { engine_message: finish_reason.message, aborted: true },
  });
  assert.throws(() => readAll([frame(pair(5), 1), queued]), { code: "engine_failed" });
  const full = { output_ids: [], meta_info: { finish_reason: { ...finish_reason, status_code: 503 } } };
  assert.throws(() => readAll([full]), RetryableFailure);
  assert.throws(() => readAll([frame(pair(5), 1), full]), { code: "engine_failed" });
});
