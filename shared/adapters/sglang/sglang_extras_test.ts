import assert from "node:assert/strict";
import type { EngineExtras, ExtrasAsked } from "../../ports/engine.ts";
import { extraFields, ExtrasReader } from "./sglang_extras.ts";

const EXPECTED = { promptTokens: 5, vocabSize: 100 };
/** Two sampled tokens after five: positions 2 to 5, three values each. */
const ROWS = Int32Array.from({ length: 4 * 3 }, (_, index) => index * 1_000_003);
const IDS = [7, 8];

function base64(values: readonly number[] | Int32Array): string {
  return new Uint8Array(Int32Array.from(values).buffer).toBase64();
}

function readOne(asked: ExtrasAsked, meta: Record<string, unknown>): EngineExtras {
  const reader = new ExtrasReader(asked, EXPECTED);
  reader.note(meta, { fresh: 2, sampled: 2 });
  return reader.end(IDS);
}

Deno.test("extraFields asks in the fields that SGLang and slime's SGLang read", () => {
  assert.deepEqual(extraFields({}), { body: {}, customParams: {} });
  assert.deepEqual(extraFields({ expertsFrom: 7, topPIds: true, specInfo: true }), {
    body: { return_routed_experts: true, routed_experts_start_len: 7 },
    customParams: { return_top_p_token_ids: true },
  });
});

Deno.test("ExtrasReader takes experts bit for bit", () => {
  const { experts, ...rest } = readOne({ expertsFrom: 2 }, { routed_experts: base64(ROWS) });
  assert.deepEqual(experts, { start: 2, rows: 4, bytes: new Uint8Array(ROWS.buffer) });
  assert.deepEqual(rest, {}, "nothing else was asked for");
});

Deno.test("ExtrasReader tells what the engine left out from what does not fit the tokens", () => {
  const experts = (sent: unknown) => readOne({ expertsFrom: 2 }, { routed_experts: sent }).experts;
  for (const sent of [undefined, null]) assert.deepEqual(experts(sent), { missing: "dropped" });
  const wrong = ["", base64(ROWS.slice(1)), "%%%", 5, [1, 2, 3, 4], base64(ROWS).slice(0, -1)];
  for (const sent of wrong) assert.deepEqual(experts(sent), { missing: "inconsistent" }, JSON.stringify(sent));
  // From after the last position that was computed: no rows.
  assert.deepEqual(readOne({ expertsFrom: 6 }, { routed_experts: "" }).experts, {
    start: 6,
    rows: 0,
    bytes: new Uint8Array(),
  });
  assert.deepEqual(readOne({ expertsFrom: 7 }, { routed_experts: "" }).experts, { missing: "inconsistent" });
});

Deno.test("ExtrasReader reads the ids behind top-p, in base64 and as lists", () => {
  const ids = [7, 9, 3, 8];
  const expected = { offsets: Int32Array.of(0, 2, 4), ids: Int32Array.from(ids) };
  for (const form of [base64, (values: readonly number[]) => values]) {
    const meta = { top_p_token_ids: form(ids), top_p_token_offsets: form([0, 2, 4]) };
    assert.deepEqual(readOne({ topPIds: true }, meta).topPIds, expected);
  }
});

Deno.test("ExtrasReader refuses ids behind top-p that do not fit the tokens", () => {
  const read = (ids: unknown, offsets: unknown) =>
    readOne({ topPIds: true }, { top_p_token_ids: ids, top_p_token_offsets: offsets }).topPIds;
  assert.deepEqual(read(undefined, undefined), { missing: "dropped" });
  assert.deepEqual(read([7, 8], undefined), { missing: "dropped" });
  for (
    const [ids, offsets] of [
      [[7, 8], [0, 1]],
      [[7, 8], [0, 1, 3]],
      [[7, 8], [1, 1, 2]],
      [[7, 8, 8], [0, 3, 2]],
      [[7, 9], [0, 1, 2]],
      [[7, 8, 100], [0, 1, 3]],
      [[7, 8, -1], [0, 1, 3]],
      [[7, 8.5], [0, 1, 2]],
      ["AAA", [0, 1, 2]],
    ]
  ) assert.deepEqual(read(ids, offsets), { missing: "inconsistent" }, JSON.stringify([ids, offsets]));
});

Deno.test("ExtrasReader puts the frames of a stream together, deltas and cumulative ones", () => {
  const whole = { offsets: Int32Array.of(0, 1, 3, 4), ids: Int32Array.of(7, 8, 9, 5) };
  const framesOf = (pieces: [ids: number[], offsets: number[]][]) =>
    pieces.map(([ids, offsets]) => ({ top_p_token_ids: base64(ids), top_p_token_offsets: base64(offsets) }));
  const deltas = framesOf([[[7], [0, 1]], [[8, 9], [0, 2]], [[5], [0, 1]], [[], [0]]]);
  const cumulative = framesOf([[[7], [0, 1]], [[7, 8, 9], [0, 1, 3]], [[7, 8, 9, 5], [0, 1, 3, 4]], [[7, 8, 9, 5], [
    0,
    1,
    3,
    4,
  ]]]);
  for (const frames of [deltas, cumulative]) {
    const reader = new ExtrasReader({ topPIds: true }, EXPECTED);
    for (const [k, meta] of frames.entries()) {
      reader.note(meta, { fresh: k < 3 ? 1 : 0, sampled: Math.min(3, k + 1) });
    }
    assert.deepEqual(reader.end([7, 8, 5]).topPIds, whole);
  }
  const holed = new ExtrasReader({ topPIds: true }, EXPECTED);
  for (const [k, meta] of [deltas[0]!, {}, deltas[2]!].entries()) holed.note(meta, { fresh: 1, sampled: k + 1 });
  assert.deepEqual(holed.end([7, 8, 5]).topPIds, { missing: "dropped" });
});

Deno.test("ExtrasReader reads the counters of speculation; a single token needs none", () => {
  const counters = { spec_verify_ct: 3, spec_accept_token_num: 4, spec_draft_token_num: 9 };
  assert.deepEqual(readOne({ specInfo: true }, counters).specInfo, {
    verifications: 3,
    acceptedTokens: 4,
    draftTokens: 9,
  });
  assert.deepEqual(readOne({ specInfo: true }, { ...counters, spec_verify_ct: undefined }).specInfo, {
    missing: "dropped",
  });
  const single = new ExtrasReader({ specInfo: true }, EXPECTED);
  single.note({}, { fresh: 1, sampled: 1 });
  assert.deepEqual(single.end([7]).specInfo, { verifications: 0, acceptedTokens: 0, draftTokens: 0 });
});
