/** Penalties, biases and the ban on early stops do what SGLang's do. */

import assert from "node:assert/strict";
import { type LogitEditOptions, LogitEdits } from "./logit_edits.ts";
import { NextTokenLogits, TAIL_CLASSES } from "./next_token_logits.ts";

const none: LogitEditOptions = {
  frequencyPenalty: 0,
  presencePenalty: 0,
  repetitionPenalty: 1,
  logitBias: new Map(),
  minNewTokens: 0,
  stopIds: [3],
};

function edited(options: Partial<LogitEditOptions>, sampled: readonly number[]): (id: number) => number {
  const logits = new NextTokenLogits(16, new Float64Array(TAIL_CLASSES).fill(-2));
  logits.reset(0);
  logits.set(1, 1);
  logits.set(2, 1);
  logits.set(3, 1);
  const edits = new LogitEdits({ ...none, ...options });
  for (const id of sampled) edits.add(id);
  edits.apply(logits);
  return (id) => logits.get(id);
}

Deno.test("LogitEdits frequency counts every occurrence, presence the first", () => {
  const get = edited({ frequencyPenalty: 0.5, presencePenalty: 0.25 }, [1, 1, 9]);
  assert.deepEqual([get(1), get(2), get(9)], [-0.25, 1, -2.75]);
});

Deno.test("LogitEdits repetition divides a positive and multiplies a negative logit", () => {
  const get = edited({ repetitionPenalty: 2 }, [1, 9]);
  assert.deepEqual([get(1), get(2), get(9), get(10)], [0.5, 1, -4, -2]);
});

Deno.test("LogitEdits biases any id", () => {
  const get = edited({ logitBias: new Map([[1, 3], [12, 5]]) }, []);
  assert.deepEqual([get(1), get(12), get(13)], [4, 3, -2]);
});

Deno.test("LogitEdits bans stop ids before the least length", () => {
  assert.equal(edited({ minNewTokens: 2 }, [1])(3), -Infinity);
  assert.equal(edited({ minNewTokens: 2 }, [1, 1])(3), 1);
});
