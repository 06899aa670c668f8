import assert from "node:assert/strict";
import { expertsFrom, type ExpertsReach, isMissing } from "./turn_extras.ts";

function turn(parent: number | null, tokens: [number, number], actor: ExpertsReach["actor"] = "policy") {
  return { record: { actor, parent, promptTokens: tokens[0], completionTokens: tokens[1] } };
}

Deno.test("expertsFrom begins at the last token of the series, or at 0", () => {
  const turns = [turn(null, [10, 5]), turn(0, [20, 3]), turn(null, [7, 2])];
  assert.equal(expertsFrom(turns, null), 0);
  assert.equal(expertsFrom(turns, 0), 14);
  assert.equal(expertsFrom(turns, 1), 22);
  assert.equal(expertsFrom(turns, 2), 8);
});

Deno.test("expertsFrom asks for what a teacher sampled too: the policy never computed it", () => {
  const turns = [turn(null, [10, 5], "teacher"), turn(0, [20, 3]), turn(1, [30, 2], "teacher"), turn(2, [40, 1])];
  assert.equal(expertsFrom(turns, 0), 0);
  assert.equal(expertsFrom(turns, 2), 22);
  assert.equal(expertsFrom(turns, 3), 40);
});

Deno.test("isMissing tells a reason from what is there", () => {
  assert.equal(isMissing({ missing: "dropped" }), true);
  assert.equal(isMissing({ acceptedTokens: 0, draftTokens: 0, verifications: 0 }), false);
});
