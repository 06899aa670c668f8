import assert from "node:assert/strict";
import fc from "fast-check";
import type { EngineChunk } from "../../ports/engine.ts";
import { type ReplyExpectation, ReplyReader } from "./sglang_reply.ts";
import type { VersionWatch } from "./version_ledger.ts";

const VOCAB_SIZE = 1000;
/** The worker is known to have the weights that the frames name, unless a test says otherwise. */
const EXPECTED: ReplyExpectation = {
  promptTokens: 4,
  vocabSize: VOCAB_SIZE,
  maxNewTokens: 50,
  topLogprobs: 0,
  versions: { before: "7", unchanged: true },
};

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
function framesOf(
  all: readonly Token[],
  cuts: readonly number[],
  incremental: boolean,
  last: Record<string, unknown> = LENGTH,
): unknown[] {
  const ends = [...cuts.map((cut) => cut % (all.length + 1)), all.length].sort((a, b) => a - b);
  return ends.map((end, k) =>
    frame(all.slice(incremental ? ends[k - 1] ?? 0 : 0, end), end, k === ends.length - 1 ? last : {})
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
      weightVersions: [{ version: null, start: 0, end: 1, exact: false }],
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
  const untoldAtLast = [frame(all.slice(0, 3), 3), frame(all, 4, { ...LENGTH, weight_version: undefined })];
  assert.deepEqual(readAll(untoldAtLast).at(-1), END, "as it was named before");
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
    "a logprob of no probability": frame(pair(5), 1, entries([[0.5, 5]])),
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
    assert.throws(() => readAll([lie]), { kind: "inconsistent" }, what);
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
    assert.throws(() => readAll(frames), { kind: "inconsistent" }, what);
  }
});

Deno.test("ReplyReader claims exact weights only where they were known before, and not contradicted since", () => {
  const whole = [frame(pair(5, 9), 2, LENGTH)];
  const versionsOf = (versions: VersionWatch) => {
    const end = readAll(whole, { ...EXPECTED, versions }).at(-1);
    return end?.type === "end" ? end.weightVersions : null;
  };
  const inexact = [{ version: "7", start: 0, end: 2, exact: false }];
  assert.equal(versionsOf({ before: "7", unchanged: true }), undefined);
  assert.deepEqual(versionsOf({ before: "6", unchanged: true }), inexact);
  assert.deepEqual(versionsOf({ before: null, unchanged: true }), inexact);
  assert.deepEqual(versionsOf({ before: "7", unchanged: false }), inexact);
});

const ABORTED = { finish_reason: { type: "abort", message: "Aborted", status_code: null } };

Deno.test("ReplyReader gives what was sampled before an abort, that frame's own tokens too, however it is framed", () => {
  fc.assert(fc.property(tokens, fc.array(fc.nat(), { maxLength: 8 }), fc.boolean(), (all, cuts, incremental) => {
    const frames = framesOf(all, cuts, incremental, ABORTED);
    const reader = new ReplyReader(EXPECTED);
    const chunks = frames.flatMap((one) => reader.read(one));
    assert.ok(reader.ended);
    assert.deepEqual(chunks.pop(), {
      type: "aborted",
      message: "Aborted",
      weightVersions: [{ version: "7", start: 0, end: all.length, exact: true }],
      promptTokens: 4,
      cachedTokens: 2,
    });
    assert.deepEqual(chunks.flatMap((chunk) => chunk.type === "tokens" ? chunk.ids : []), all.map(({ id }) => id));
    assert.deepEqual(
      chunks.flatMap((chunk) => chunk.type === "tokens" ? chunk.logprobs : []),
      all.map(({ logprob }) => logprob),
    );
  }));
});

Deno.test("ReplyReader drops an aborted frame's tokens where anything about them does not check out", () => {
  const queued = { type: "abort", message: "Abort in waiting queue" };
  const first = frame(pair(5, 6), 2);
  const bad: Record<string, unknown> = {
    "the last id alone, as an abort in the queue has it": { output_ids: [6], meta_info: { finish_reason: queued } },
    "ids that are none": { output_ids: ["?"], meta_info: { finish_reason: queued } },
    "no ids": { meta_info: { finish_reason: queued } },
    "no count": frame(pair(5, 6, 7), null, ABORTED),
    "another count": frame(pair(5, 6, 7), 4, ABORTED),
    "a changed token": frame(pair(5, 9, 7), 3, ABORTED),
    "a changed early token": frame(pair(9, 6, 7), 3, ABORTED),
    "a changed logprob": frame([{ id: 5, logprob: -3 }, ...pair(6, 7)], 3, ABORTED),
    "tokens taken back": frame(pair(5), 1, ABORTED),
    "a logprob too few": frame(pair(5, 6, 7), 3, { ...ABORTED, output_token_logprobs: [[-0.5, 5], [-0.5, 6]] }),
    "no logprobs": frame(pair(5, 6, 7), 3, { ...ABORTED, output_token_logprobs: null }),
    "NaN at the end": frame([...pair(5, 6), { id: 7, logprob: NaN }], 3, ABORTED),
    "an id out of the vocabulary": frame(pair(5, 6, VOCAB_SIZE), 3, ABORTED),
  };
  for (const [what, last] of Object.entries(bad)) {
    const chunks = readAll([first, last]);
    assert.deepEqual(chunks.map(({ type }) => type), ["tokens", "aborted"], what);
    assert.deepEqual(chunks[0], { type: "tokens", ids: [5, 6], logprobs: [-0.5, -0.5] }, what);
  }
  const good = readAll([first, frame(pair(5, 6, 7), 3, ABORTED)]);
  assert.deepEqual(good[1], { type: "tokens", ids: [7], logprobs: [-0.5] });
});

Deno.test("ReplyReader gives an abort before any token as one without tokens, or as the failure that its status says", () => {
  const finish_reason = { type: "abort", message: "Abort in waiting queue" };
  const nothing: unknown[] = [
    { output_ids: ["?"], meta_info: { finish_reason } },
    { output_ids: [5], meta_info: { finish_reason } },
    { meta_info: { finish_reason } },
  ];
  for (const reply of nothing) {
    const aborted = { type: "aborted", message: finish_reason.message, weightVersions: [] };
    assert.deepEqual(readAll([reply]), [{ ...aborted, promptTokens: null, cachedTokens: null }]);
  }
  const full = { output_ids: [], meta_info: { finish_reason: { ...finish_reason, status_code: 503 } } };
  assert.throws(() => readAll([full]), { kind: "busy", status: 503, retryable: true });
  assert.throws(() => readAll([frame([], 0), full]), { kind: "busy" });
  // After a token it is an abort, whatever its status.
  assert.deepEqual(readAll([frame(pair(5), 1), full]).map(({ type }) => type), ["tokens", "aborted"]);
});

Deno.test("ReplyReader refuses an abort of another prompt", () => {
  assert.throws(() => readAll([frame(pair(5), 1, { ...ABORTED, prompt_tokens: 5 })]), { kind: "inconsistent" });
});

/** The frame's tokens with a top list each: the token itself and one less likely. */
function withTop(own: readonly Token[], total: number, lists: unknown = own.map(topOf)): unknown {
  return frame(own, total, { output_top_logprobs: lists, ...(total === 3 ? LENGTH : {}) });
}

function topOf({ id, logprob }: Token): unknown[] {
  return [[logprob, id, null], [logprob - 1, (id + 1) % VOCAB_SIZE, null]];
}

const THREE: readonly Token[] = [{ id: 1, logprob: -1 }, { id: 2, logprob: -2 }, { id: 3, logprob: -3 }];

Deno.test("ReplyReader gives each token its top list, in cumulative frames and in deltas", () => {
  for (const incremental of [false, true]) {
    const frames = [1, 2, 3].map((end) => withTop(THREE.slice(incremental ? end - 1 : 0, end), end));
    const chunks = readAll(frames, { ...EXPECTED, topLogprobs: 2 });
    const lists = chunks.flatMap((chunk) => chunk.type === "tokens" ? chunk.top ?? [] : []);
    assert.deepEqual(lists, THREE.map(({ id, logprob }) => [[logprob, id], [logprob - 1, id + 1]]));
  }
  const none = readAll([withTop(THREE, 3)]);
  assert.ok(none.every((chunk) => chunk.type !== "tokens" || chunk.top === undefined), "none were asked for");
});

Deno.test("ReplyReader leaves out of a top list what a grammar forbids", () => {
  const [first] = readAll([withTop(THREE, 3, THREE.map(({ id, logprob }) => [[logprob, id, null], [null, 5, null]]))], {
    ...EXPECTED,
    topLogprobs: 2,
  });
  assert.deepEqual(first?.type === "tokens" && first.top, THREE.map(({ id, logprob }) => [[logprob, id]]));
});

for (
  const [what, lists] of [
    ["are missing", undefined],
    ["are fewer than the tokens", THREE.slice(1).map(topOf)],
    ["are short", THREE.map(topOf).map((list) => list.slice(1))],
    ["rise", THREE.map(topOf).map((list) => list.toReversed())],
    ["name no id", THREE.map(topOf).map(([first]) => [first, [-9, null, null]])],
    ["are no lists", THREE.map(() => ({}))],
  ] as const
) {
  Deno.test(`ReplyReader refuses top lists that ${what}`, () => {
    const expected = { ...EXPECTED, topLogprobs: 2 };
    const reply = lists === undefined ? frame(THREE, 3, LENGTH) : withTop(THREE, 3, lists);
    assert.throws(() => readAll([reply], expected), { kind: "inconsistent" });
  });
}
