import assert from "node:assert/strict";
import { costUsd, listedPrice } from "./price_table.ts";

const price = { input: 2, cachedInput: 0.5, output: 8 };

Deno.test("costUsd counts input, cached input and output apart, per million tokens", () => {
  assert.equal(costUsd({ promptTokens: 1e6, cachedTokens: 0, completionTokens: 0 }, price), 2);
  assert.equal(costUsd({ promptTokens: 1e6, cachedTokens: 1e6, completionTokens: 0 }, price), 0.5);
  assert.equal(costUsd({ promptTokens: 0, cachedTokens: null, completionTokens: 1e6 }, price), 8);
  assert.equal(costUsd({ promptTokens: 1000, cachedTokens: 400, completionTokens: 100 }, price), 0.0022);
});

Deno.test("costUsd takes cached tokens that are not told for none, and never for more than the prompt", () => {
  assert.equal(costUsd({ promptTokens: 1e6, cachedTokens: null, completionTokens: 0 }, price), 2);
  assert.equal(costUsd({ promptTokens: 1e6, cachedTokens: 2e6, completionTokens: 0 }, price), 0.5);
});

Deno.test("an unknown price is no price of nothing", () => {
  assert.equal(listedPrice("somebody's-model"), null);
  assert.equal(listedPrice("toString"), null);
  assert.equal(costUsd({ promptTokens: 1, cachedTokens: 0, completionTokens: 1 }, null), null);
});

Deno.test("a release of a model has the model's price", () => {
  assert.deepEqual(listedPrice("gpt-4o-2024-11-20"), listedPrice("gpt-4o"));
  assert.deepEqual(listedPrice("gpt-4o"), { input: 2.5, cachedInput: 1.25, output: 10 });
});
