import assert from "node:assert/strict";
import fc from "fast-check";
import { basisOf, isRaw, type SamplingParams } from "../../core/sampling.ts";
import { effectiveSampling } from "./effective_sampling.ts";

const RAW: SamplingParams = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
};

function capture(
  wished: SamplingParams,
  task: { fixedSampling?: SamplingParams; agentMaySet?: string[] } = {},
): ReturnType<typeof effectiveSampling> {
  return effectiveSampling({ capture: true, fixedSampling: {}, agentMaySet: [], ...task }, wished);
}

Deno.test("effectiveSampling of a capture task is the raw distribution, every parameter said", () => {
  assert.deepEqual(capture({}), { sampling: RAW, ignored: [] });
});

Deno.test("effectiveSampling of a capture task lists what the agent wished in vain, and only that", () => {
  const wished = { temperature: 0.7, top_p: 1, seed: 4, sampling_seed: 3, regex: "a", min_p: undefined };
  assert.deepEqual(capture(wished), { sampling: RAW, ignored: ["temperature", "seed", "sampling_seed", "regex"] });
});

Deno.test("effectiveSampling holds what the task fixes, over the defaults and over the agent", () => {
  const { sampling, ignored } = capture({ temperature: 1, top_k: 20 }, {
    fixedSampling: { temperature: 0.8, top_k: 20, sampling_seed: 5 },
  });
  assert.deepEqual(sampling, { ...RAW, temperature: 0.8, top_k: 20, sampling_seed: 5 });
  assert.deepEqual(ignored, ["temperature"]);
});

Deno.test("effectiveSampling lets the agent set what the task names, over what it fixes", () => {
  const task = { fixedSampling: { temperature: 0.8, top_p: 0.9 }, agentMaySet: ["temperature", "logit_bias"] };
  const { sampling, ignored } = capture({ temperature: 0.2, top_p: 0.5, logit_bias: { "1": 2 } }, task);
  assert.deepEqual(sampling, { ...RAW, temperature: 0.2, top_p: 0.9, logit_bias: { "1": 2 } });
  assert.deepEqual(ignored, ["top_p"]);
});

Deno.test("effectiveSampling takes the lower of the two limits", () => {
  const limit = (fixed: number | undefined, wished: number | undefined) =>
    capture({ max_new_tokens: wished }, {
      fixedSampling: fixed === undefined ? {} : { max_new_tokens: fixed },
      agentMaySet: ["max_new_tokens"],
    }).sampling.max_new_tokens;
  assert.deepEqual([limit(5, 9), limit(9, 5), limit(5, undefined), limit(undefined, 7), limit(undefined, undefined)], [
    5,
    5,
    5,
    7,
    undefined,
  ]);
});

Deno.test("effectiveSampling stops at the task's and the agent's stop strings, each once", () => {
  const { sampling, ignored } = capture({ stop: ["b", "a"] }, { fixedSampling: { stop: ["a"] } });
  assert.deepEqual(sampling.stop, ["a", "b"]);
  assert.deepEqual(ignored, []);
});

Deno.test("effectiveSampling without capture is what the agent wishes, as a copy", () => {
  const wished = { temperature: 0.2, stop: ["x"] };
  for (const settings of [null, { capture: false, fixedSampling: {}, agentMaySet: [] }]) {
    const { sampling, ignored } = effectiveSampling(settings, wished);
    assert.deepEqual({ sampling, ignored }, { sampling: wished, ignored: [] });
    assert.notEqual(sampling, wished);
  }
});

Deno.test("effectiveSampling of a capture task that fixes nothing has the raw basis, whatever the agent wishes", () => {
  const wished = fc.record({
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0.01, max: 1, noNaN: true }),
    frequency_penalty: fc.integer({ min: -2, max: 2 }),
    repetition_penalty: fc.double({ min: 0.1, max: 2, noNaN: true }),
    min_new_tokens: fc.nat(5),
    max_new_tokens: fc.nat(50),
    stop: fc.array(fc.string({ minLength: 1 })),
    logit_bias: fc.constant({ "3": 1 }),
  }, { requiredKeys: [] });
  fc.assert(fc.property(wished, (params) => assert.ok(isRaw(basisOf(capture(params).sampling)))));
});

Deno.test("effectiveSampling takes a grammar from the agent, and the basis says so", () => {
  for (const grammar of [{ json_schema: "{}" }, { structural_tag: "{}" }]) {
    const { sampling, ignored } = capture(grammar);
    assert.deepEqual(ignored, []);
    assert.equal(basisOf(sampling).constrained, true);
  }
});
