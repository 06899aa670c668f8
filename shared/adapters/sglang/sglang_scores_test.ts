import assert from "node:assert/strict";
import fc from "fast-check";
import type { ScoreRequest } from "../../ports/engine.ts";
import { checkScores } from "./sglang_scores.ts";

type Entry = [logprob: unknown, id: unknown, text: null];

function requestOf(prompt: readonly number[], response: readonly number[]): ScoreRequest {
  return { rid: "r", prompt: Uint32Array.from(prompt), response: Uint32Array.from(response) };
}

function replyOf(entries: unknown, meta: Record<string, unknown> = {}): unknown {
  return {
    output_ids: [1],
    meta_info: { finish_reason: { type: "length", length: 1 }, ...meta, input_token_logprobs: entries },
  };
}

const id = fc.nat(200_000);
const logprob = fc.double({ max: 0, noNaN: true, noDefaultInfinity: true });

Deno.test("checkScores gives one logprob a response token, by the index law", () => {
  const scored = fc.array(fc.tuple(id, logprob));
  fc.assert(fc.property(fc.array(id, { minLength: 1 }), scored, (prompt, response) => {
    const entries: Entry[] = [[null, prompt.at(-1), null]];
    for (const [responseId, value] of response) entries.push([value, responseId, null]);
    const request = requestOf(prompt, response.map(([responseId]) => responseId));
    const scores = checkScores(replyOf(entries), request);
    assert.deepEqual(scores, Float64Array.from(response, ([, value]) => value));
  }));
});

Deno.test("checkScores refuses whatever breaks the index law", () => {
  const request = requestOf([7, 8], [1, 2, 3]);
  const good: Entry[] = [[null, 8, null], [-1, 1, null], [-2, 2, null], [-3, 3, null]];
  assert.deepEqual([...checkScores(replyOf(good), request)], [-1, -2, -3]);
  const bad: Record<string, unknown> = {
    "no list": undefined,
    "null for a list": null,
    "a position too few": good.slice(0, 3),
    "a position too many": [...good, [-4, 4, null]],
    "the first position missing": good.slice(1),
    "shifted by one": [[null, 7, null], [-1, 8, null], [-2, 1, null], [-3, 2, null]],
    "another id before the response": good.with(0, [null, 7, null]),
    "a logprob where none can be": good.with(0, [-1, 8, null]),
    "another id": good.with(2, [-2, 9, null]),
    "a text for an id": good.with(2, [-2, "2", null]),
    "null for a logprob": good.with(3, [null, 3, null]),
    "a text for a logprob": good.with(3, ["-3", 3, null]),
    "a logprob that is not finite": good.with(1, [-Infinity, 1, null]),
    "an entry that is no list": [...good.slice(0, 3), null],
  };
  for (const [what, entries] of Object.entries(bad)) {
    assert.throws(() => checkScores(replyOf(entries), request), { kind: "inconsistent" }, what);
  }
  for (const reply of [null, [], "x", {}, { meta_info: null }]) {
    assert.throws(() => checkScores(reply, request), { kind: "inconsistent" });
  }
});

Deno.test("checkScores gives an abort as the failure it is", () => {
  const finish_reason = { type: "abort", message: "Aborted", status_code: null, err_type: null };
  assert.throws(() => checkScores(replyOf([], { finish_reason }), requestOf([1], [2])), { kind: "aborted" });
});
