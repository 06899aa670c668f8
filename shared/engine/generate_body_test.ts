/** Batches, broadcasting, samples and ids of a `/generate` body. */

import assert from "node:assert/strict";
import { parseGenerateBody } from "./generate_body.ts";

function parse(body: unknown): ReturnType<typeof parseGenerateBody> {
  let made = 0;
  return parseGenerateBody(body, () => `new${made++}`);
}

Deno.test("parseGenerateBody reads a single prompt with defaults and ignores unknown fields", () => {
  const { single, items, stream } = parse({ input_ids: [1, 2], bogus: {}, rid: null, top_logprobs_num: null });
  assert.equal(single, true);
  assert.equal(stream, false);
  assert.deepEqual(items, [{
    rid: "new0",
    text: null,
    inputIds: [1, 2],
    samplingParams: {},
    returnLogprob: false,
    logprobStartLen: -1,
    topLogprobsNum: 0,
    flatTopLogprobs: "off",
    tokenIdsLogprob: null,
    returnTextInLogprobs: false,
    returnPromptTokenIds: false,
    returnRoutedExperts: false,
    routedExpertsStartLen: 0,
    stream: false,
    cacheKey: "\u0000",
  }]);
});

Deno.test("parseGenerateBody broadcasts scalars over a batch and keeps lists by index", () => {
  const { single, items } = parse({
    text: ["a", "b"],
    rid: "r",
    return_logprob: true,
    logprob_start_len: [0, 1],
    token_ids_logprob: [[5], [6, 7]],
    sampling_params: [{ top_k: 1 }, { top_k: 2 }],
    extra_key: ["x", "y"],
  });
  assert.equal(single, false);
  assert.deepEqual(items.map((item) => [item.rid, item.text, item.logprobStartLen, item.returnLogprob]), [
    ["r_0", "a", 0, true],
    ["r_1", "b", 1, true],
  ]);
  assert.deepEqual(items.map((item) => item.tokenIdsLogprob), [[5], [6, 7]]);
  assert.deepEqual(items.map((item) => item.samplingParams), [{ top_k: 1 }, { top_k: 2 }]);
  assert.deepEqual(items.map((item) => item.cacheKey), ["x\u0000", "y\u0000"]);
});

Deno.test("parseGenerateBody makes n samples of each prompt under fresh ids, prompt by prompt", () => {
  const one = parse({ text: "a", rid: "mine", sampling_params: { n: 2 } });
  assert.equal(one.single, false);
  assert.deepEqual(one.items.map(({ rid }) => rid), ["new0", "new1"]);
  assert.deepEqual(one.groupRids, ["mine_0"]);
  const two = parse({ input_ids: [[1], [2]], sampling_params: { n: 2 } });
  assert.deepEqual(two.items.map(({ inputIds }) => inputIds), [[1], [1], [2], [2]]);
});

Deno.test("parseGenerateBody refuses with SGLang's messages", () => {
  const values: readonly [unknown, string][] = [
    [{}, "Either text, input_ids or input_embeds should be provided."],
    [{ input_ids: [] }, "input_ids cannot be empty."],
    [
      { text: ["a"], rid: ["x", "y"] },
      "The specified rids length mismatch with the batch_size for batch processing.",
    ],
    [{ text: ["a", "b"], rid: ["x", "x"] }, "Duplicate request IDs detected within the request: ['x']"],
    [
      { text: "a", return_logprob: [true], sampling_params: { n: 2 } },
      "Cannot use list return_logprob with parallel_sample_num > 1",
    ],
    [
      { text: ["a", "b"], sampling_params: [{ n: 1 }, { n: 2 }] },
      "The parallel_sample_num should be the same for all samples in sample params.",
    ],
    [{ text: "a", extra_key: ["x"] }, "extra_key should be a string for a single request."],
    [{ text: ["a"], cache_salt: 5 }, "cache_salt should be a list or a string."],
  ];
  for (const [body, message] of values) assert.throws(() => parse(body), { kind: "value", message });
});

Deno.test("parseGenerateBody tells a body that does not fit its fields from a bad value", () => {
  const bodies = [null, [], 5, { input_ids: "abc" }, { input_ids: [1.5] }, { text: 5 }, { text: "a", stream: "yes" }];
  for (const body of [...bodies, { text: "a", sampling_params: "x" }, { text: "a", rid: 5 }]) {
    assert.throws(() => parse(body), { kind: "body" }, JSON.stringify(body));
  }
});
