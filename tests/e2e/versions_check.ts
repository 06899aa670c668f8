/** The promise across weights: every sampled token of a row has the logprob that the weights named for it give it. */

import assert from "node:assert/strict";
import type { Body } from "./gateway_client.ts";
import type { WorkerFleet } from "./worker_fleet.ts";

/** Logprobs are float32 on the wire; beyond that they are the same numbers. */
const TOLERANCE = 1e-6;

/** What was found. */
export interface CheckedTokens {
  /** Sampled tokens, of which so many by weights that are named exactly. */
  readonly sampled: number;
  readonly exact: number;
}

/**
 * Checks a row sampled at the raw basis. Where segments are exact each token is of its segment's weights. Where they are
 * not, the weights of a turn's tokens are those its segments name, in that order.
 */
export async function checkRowAcrossVersions(fleet: WorkerFleet, row: Body): Promise<CheckedTokens> {
  const prompt = row.tokens.slice(0, row.prompt_length);
  const response = row.tokens.slice(row.prompt_length);
  const versions: string[] = [...new Set<string>(row.weight_versions.map(({ version }: Body) => version))];
  const scores = new Map<string, number[]>();
  for (const version of versions) scores.set(version, await fleet.scores(version, prompt, response));
  const fits = (version: string, at: number): boolean =>
    Math.abs(scores.get(version)![at]! - row.logprobs[at]) <= TOLERANCE;
  let exact = 0;
  let sampled = 0;
  for (const { start, end, turn } of row.turns) {
    const segments = row.weight_versions.filter((segment: Body) => segment.start < end && segment.end > start);
    const order: string[] = segments.map((segment: Body) => segment.version);
    let place = 0;
    for (let at = start; at < end; at++) {
      sampled++;
      const segment = segments.find((one: Body) => at >= one.start && at < one.end);
      const why = `token ${at - start} of turn ${turn}, ${JSON.stringify(segments)}`;
      if (segment.exact) {
        exact++;
        assert.ok(fits(segment.version, at), why);
        place = segments.indexOf(segment);
        continue;
      }
      while (place < order.length && !fits(order[place]!, at)) place++;
      assert.ok(place < order.length, why);
    }
  }
  assert.equal(sampled, row.sampled_mask.reduce((sum: number, bit: number) => sum + bit, 0));
  return { sampled, exact };
}
