/** The promise, token by token: what an export calls sampled, the engine finds again after the exported tokens before it. */

import assert from "node:assert/strict";
import type { Engine } from "../../shared/ports/engine.ts";
import type { Body } from "./harness.ts";

/** Logprobs are float32 on the wire; beyond that they are the same numbers. */
const TOLERANCE = 1e-6;

/** Checks rows sampled at the raw basis; the number of sampled tokens in them. */
export async function checkRowsByForceDecoding(engine: Engine, rows: readonly Body[]): Promise<number> {
  let sampled = 0;
  const trained = new Set<number>();
  for (const row of rows) {
    const length = row.response_length;
    for (const name of ["loss_mask", "sampled_mask", "logprobs"]) assert.equal(row[name].length, length);
    assert.equal(row.tokens.length, row.prompt_length + length);
    for (const { turn, start, end, actor } of row.turns) {
      const sampledHere = actor === "policy" ? 1 : 0;
      assert.ok(row.sampled_mask.slice(start, end).every((bit: number) => bit === sampledHere));
      if (start === end || row.loss_mask[start] === 0) continue;
      assert.ok(!trained.has(turn), `turn ${turn} trains once`);
      trained.add(turn);
    }
    const tokens = Uint32Array.from(row.tokens);
    const scores = await engine.score({
      rid: crypto.randomUUID().replaceAll("-", ""),
      prompt: tokens.slice(0, row.prompt_length),
      response: tokens.slice(row.prompt_length),
    }, AbortSignal.timeout(60_000));
    for (let k = 0; k < length; k++) {
      if (row.sampled_mask[k] === 0) {
        assert.deepEqual([row.logprobs[k], row.loss_mask[k]], [0, 0]);
        continue;
      }
      sampled++;
      assert.ok(
        Math.abs(scores[k]! - row.logprobs[k]) <= TOLERANCE,
        `token ${k} of the row to turn ${row.path.at(-1)}: exported ${row.logprobs[k]}, found ${scores[k]}`,
      );
    }
  }
  return sampled;
}
