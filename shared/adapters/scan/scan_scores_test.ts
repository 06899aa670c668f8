import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { EngineFailure } from "../sglang/engine_failure.ts";
import type { ScanExpectation } from "./scan_arrays.ts";
import { type ScannedReply, ScoreScanner } from "./scan_scores.ts";

const VOCABULARY = 1000;

type Entry = [logprob: number | null, id: number, text?: string | null];

interface Reply {
  readonly expected: ScanExpectation;
  readonly body: Record<string, unknown>;
}

/** Logprobs as engines write them: float32 values as doubles, and doubles. */
const logprobs = fc.oneof(
  fc.float({ min: -60, max: 0, noNaN: true }),
  fc.double({ min: -60, max: 0, noNaN: true }),
  fc.constantFrom(0, -0, -1e-7, -1e-30, -100),
);
const texts = fc.constantFrom(null, undefined, "]", '"', "\\", "a,b", "\u{1f600}");
const noise = fc.oneof(
  fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text)),
  fc.constantFrom("]}", '\\"', { meta_info: [1] }),
);

function entry(logprob: number | null, id: number, text: string | null | undefined): Entry {
  return text === undefined ? [logprob, id] : [logprob, id, text];
}

const replies: fc.Arbitrary<Reply> = fc.record({
  response: fc.array(fc.nat(VOCABULARY - 1), { maxLength: 6 }),
  topK: fc.integer({ min: 0, max: 4 }),
  tokenIds: fc.uniqueArray(fc.nat(VOCABULARY - 1), { maxLength: 3 }),
  seed: fc.infiniteStream(logprobs),
  ids: fc.infiniteStream(fc.nat(VOCABULARY - 1)),
  text: texts,
  mask: fc.option(fc.infiniteStream(fc.constantFrom(0, 1))),
  noise: fc.tuple(noise, noise, noise),
}).map(({ response, topK, tokenIds, seed, ids, text, mask, noise }) => {
  const next = () => seed.next().value!;
  const tokens: Entry[] = [entry(null, 7, text)];
  const top: (Entry[] | null)[] = [null];
  const chosen: (Entry[] | null)[] = [null];
  for (const id of response) {
    const row = new Map<number, number>();
    while (row.size < topK) row.set(ids.next().value!, next());
    const sorted = [...row].sort((left, right) => right[1] - left[1]);
    top.push(sorted.map(([topId, logprob]) => entry(logprob, topId, text)));
    tokens.push(entry(row.get(id) ?? (topK === 0 ? next() : sorted.at(-1)![1] - 0.5), id, text));
    chosen.push(tokenIds.map((wanted) => entry(next(), wanted, text)));
  }
  const meta = {
    id: "r",
    noise: noise[0],
    finish_reason: { type: "length", length: 1 },
    prompt_tokens: 2 + response.length,
    weight_version: "v\u00e9",
    input_token_logprobs: tokens,
    output_token_logprobs: [entry(-1, 3, text)],
    ...(topK > 0 ? { input_top_logprobs: top } : {}),
    more: noise[1],
    ...(tokenIds.length > 0 ? { input_token_ids_logprobs: chosen } : {}),
  };
  return {
    expected: {
      prompt: Uint32Array.of(5, 7),
      response: Uint32Array.from(response),
      topK,
      tokenIds: Uint32Array.from(tokenIds),
      mask: mask === null ? null : Uint8Array.from(response, () => mask.next().value!),
      vocabSize: VOCABULARY,
    },
    body: { text: "a\n", noise: noise[2], output_ids: [3], meta_info: meta, last: -0.5 },
  };
});

function scan(expected: ScanExpectation, text: string, cuts: readonly number[] = []): ScannedReply {
  const bytes = new TextEncoder().encode(text);
  const scanner = new ScoreScanner(expected);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((left, right) => left - right);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    scanner.push(bytes.slice(from, to));
    from = to;
  }
  return scanner.finish();
}

/** The same by way of a JSON tree. */
function readTree(expected: ScanExpectation, text: string): Omit<ScannedReply, "meta"> {
  const { meta_info: meta } = JSON.parse(text);
  const kept = [...expected.response.keys()].filter((k) => expected.mask === null || expected.mask[k] === 1);
  const rows = (table: Entry[][] | undefined): Entry[] => table === undefined ? [] : kept.flatMap((k) => table[k + 1]!);
  return {
    logprobs: Float64Array.from(kept, (k) => meta.input_token_logprobs[k + 1][0]),
    topkIndices: Int32Array.from(rows(meta.input_top_logprobs), ([, id]) => id),
    topkLogprobs: Float32Array.from(rows(meta.input_top_logprobs), ([logprob]) => logprob!),
    tokenIdsLogprobs: Float32Array.from(rows(meta.input_token_ids_logprobs), ([logprob]) => logprob!),
  };
}

Deno.test("ScoreScanner reads what JSON.parse reads, in any pieces and any spacing", () => {
  const spacing = fc.constantFrom(undefined, 1, "\t");
  fc.assert(
    fc.property(replies, fc.array(fc.nat(), { maxLength: 40 }), spacing, ({ expected, body }, cuts, space) => {
      const text = JSON.stringify(body, null, space);
      const { meta, ...arrays } = scan(expected, text, cuts);
      assert.deepEqual(arrays, readTree(expected, text));
      assert.equal(meta.weight_version, "v\u00e9");
      assert.deepEqual(meta.finish_reason, { type: "length", length: 1 });
    }),
    { numRuns: 400, endOnFailure: true },
  );
});

Deno.test("ScoreScanner reads a reply byte by byte", () => {
  fc.assert(
    fc.property(replies, ({ expected, body }) => {
      const text = JSON.stringify(body);
      const { meta: _, ...arrays } = scan(expected, text, Array.from({ length: text.length * 2 }, (_, at) => at));
      assert.deepEqual(arrays, readTree(expected, text));
    }),
    { numRuns: 20 },
  );
});

/** The same reply with its top lists flat. */
function flattened({ expected, body }: Reply, form: "numbers" | "base64"): Record<string, unknown> {
  const { input_top_logprobs: top, ...meta } = body.meta_info as { input_top_logprobs?: (Entry[] | null)[] };
  if (top === undefined) return body;
  const entries = top.flatMap((row) => row ?? []);
  // JSON.stringify has no sign for a zero.
  const values = entries.map(([logprob]) => (logprob ?? NaN) + 0);
  const ids = entries.map(([, id]) => id);
  const text = (words: Float32Array | Int32Array) => Buffer.from(words.buffer).toString("base64");
  const flat = form === "numbers" ? { input_top_logprobs_val_flat: values, input_top_logprobs_idx_flat: ids } : {
    input_top_logprobs_val_flat_b64: text(Float32Array.from(values)),
    input_top_logprobs_idx_flat_b64: text(Int32Array.from(ids)),
  };
  const shape = [expected.response.length, expected.topK];
  return {
    ...body,
    meta_info: { ...flat, ...meta, input_top_logprobs_shape: shape, input_top_logprobs_null_prefix: 1 },
  };
}

Deno.test("ScoreScanner reads flat top lists as nested ones, in any pieces", () => {
  const forms = fc.constantFrom("numbers" as const, "base64" as const);
  const spacing = fc.constantFrom(undefined, 1);
  fc.assert(
    fc.property(replies, forms, fc.array(fc.nat(), { maxLength: 40 }), spacing, (reply, form, cuts, space) => {
      const { meta: _, ...arrays } = scan(reply.expected, JSON.stringify(flattened(reply, form), null, space), cuts);
      assert.deepEqual(arrays, readTree(reply.expected, JSON.stringify(reply.body)));
    }),
    { numRuns: 400, endOnFailure: true },
  );
});

Deno.test("ScoreScanner refuses every beginning of a reply with flat top lists", () => {
  fc.assert(
    fc.property(replies, fc.nat(), (reply, at) => {
      const text = JSON.stringify(flattened(reply, "base64"));
      assert.throws(() => scan(reply.expected, text.slice(0, at % text.length)), isInconsistent);
    }),
    { endOnFailure: true },
  );
});

Deno.test("ScoreScanner judges a reply read by whole rows as one read byte by byte, damaged ones too", () => {
  const damage = fc.tuple(fc.nat(), fc.constantFrom(...'[]{},-.0123456789enul "x'));
  const verdict = (read: () => ScannedReply): unknown => {
    try {
      return read();
    } catch (error) {
      assert.ok(isInconsistent(error));
      return "inconsistent";
    }
  };
  fc.assert(
    fc.property(replies, fc.option(damage), ({ expected, body }, damaged) => {
      // What follows the tables gives room for reading by whole rows.
      let text = JSON.stringify({ ...body, padding: "x".repeat(1024) });
      if (damaged !== null) {
        const from = text.indexOf("input_top_logprobs");
        const at = Math.max(from, 0) + damaged[0] % (text.length - 1024 - Math.max(from, 0));
        text = text.slice(0, at) + damaged[1] + text.slice(at + 1);
      }
      const everywhere = Array.from({ length: text.length * 2 }, (_, at) => at);
      assert.deepEqual(verdict(() => scan(expected, text)), verdict(() => scan(expected, text, everywhere)));
    }),
    { numRuns: 400, endOnFailure: true },
  );
});

Deno.test("ScoreScanner refuses every beginning of a reply that is not the whole", () => {
  fc.assert(
    fc.property(replies, fc.nat(), ({ expected, body }, at) => {
      const text = JSON.stringify(body);
      assert.throws(() => scan(expected, text.slice(0, at % text.length)), isInconsistent);
    }),
  );
});

Deno.test("ScoreScanner says what is wrong, and where", () => {
  const expected: ScanExpectation = {
    prompt: Uint32Array.of(5, 7),
    response: Uint32Array.of(1, 2),
    topK: 2,
    tokenIds: Uint32Array.of(9),
    mask: null,
    vocabSize: VOCABULARY,
  };
  const tokens = "[[null,7,null],[-1,1,null],[-2,2,null]]";
  const top = "[null,[[-1,1,null],[-3,2,null]],[[-1,1,null],[-2,2,null]]]";
  const chosen = "[null,[[-4,9,null]],[[-5,9,null]]]";
  function reply(changes: { tokens?: string; top?: string; chosen?: string; more?: string }): string {
    const { more = "" } = changes;
    return `{"meta_info":{${more}"input_token_logprobs":${changes.tokens ?? tokens},` +
      `"input_top_logprobs":${changes.top ?? top},"input_token_ids_logprobs":${changes.chosen ?? chosen}}}`;
  }
  assert.deepEqual([...scan(expected, reply({})).logprobs], [-1, -2]);
  const lies: [text: string, words: RegExp, position: number | undefined][] = [
    [reply({ tokens: tokens.replace("-2,2", "-2,3") }), /id 3, not of 2/, 2],
    [reply({ tokens: tokens.replace("-2,2", "null,2") }), /Score 2 is null/, 2],
    [reply({ tokens: tokens.replace("-2,2", "NaN,2") }), /no number/, undefined],
    [reply({ tokens: tokens.replace("null,7", "-1,7") }), /first score/, 0],
    [reply({ tokens: tokens.replace(",[-2,2,null]", "") }), /scored 2 positions where 3/, 2],
    [reply({ tokens: tokens.replace("]]", "],[-2,2,null]]") }), /more than 3 positions/, 3],
    [reply({ tokens: "[]" }), /scored 0 positions/, 0],
    [reply({ tokens: "null" }), /no "input_token_logprobs"/, undefined],
    [reply({ top: top.replace(",[-3,2,null]", "") }), /has 1 entries, not 2/, 1],
    [reply({ top: top.replace("[-3,2,null]", "[-3,2,null],[-4,4,null]") }), /more than 2 entries/, 1],
    [reply({ top: top.replace("-3,2", "-0.5,2") }), /not sorted/, 1],
    [reply({ top: top.replace("-3,2", "-3,1") }), /id 1 twice/, 1],
    [reply({ top: top.replace("-3,2", "-3,1000") }), /outside the vocabulary/, 1],
    [reply({ top: top.replace("-3,2", "null,2") }), /null/, 1],
    [reply({ top: top.replace("-3,2", "-1e40,2") }), /Score 1 is -1e\+40|Score 1 is -Infinity/, 1],
    [reply({ top: top.replace("[null,", "[[],") }), /first position/, 0],
    [reply({ top: top.replace("[[-1,1,null],[-3,2,null]]", "null") }), /not a list/, 1],
    [reply({ top: top.replace("-1,1,null],[-3,2", "-1,2,null],[-3,1") }), /different things of id 1/, 1],
    [reply({ top: "null" }), /no "input_top_logprobs"/, undefined],
    [reply({ chosen: chosen.replace("-5,9", "-5,8") }), /id 8 where 9/, 2],
    [reply({ chosen: chosen.replace("[-5,9,null]", "") }), /0 entries, not 1/, 2],
    [reply({ more: '"prompt_tokens":5,' }), /saw 5 tokens where 4/, undefined],
    [reply({}) + "1", /went on/, undefined],
    [reply({ more: `"input_token_logprobs":${tokens},` }), /twice/, undefined],
    [`[${reply({})}]`, /an object/, undefined],
  ];
  for (const [text, words, position] of lies) {
    assert.throws(() => scan(expected, text), (error: unknown) => {
      assert.ok(isInconsistent(error), text);
      assert.match(String(error), words, text);
      if (position !== undefined) assert.equal(error.details?.position, position, text);
      return true;
    });
  }
});

Deno.test("ScoreScanner tells an abort from a lie", () => {
  const expected: ScanExpectation = {
    prompt: Uint32Array.of(5),
    response: Uint32Array.of(1),
    topK: 0,
    tokenIds: new Uint32Array(0),
    mask: null,
    vocabSize: VOCABULARY,
  };
  const text = JSON.stringify({
    meta_info: { input_token_logprobs: [], finish_reason: { type: "abort", message: "Abort by user" } },
  });
  assert.throws(() => scan(expected, text), {
    kind: "aborted",
    engineMessage: "Abort by user",
  });
});

function isInconsistent(error: unknown): error is EngineFailure {
  return error instanceof EngineFailure && error.kind === "inconsistent";
}
