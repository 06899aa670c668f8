/** The bench runs: every row is there and nothing fails. How fast it was decides nothing. */

import assert from "node:assert/strict";
import { benchMachine } from "./bench_machine.ts";
import type { BenchPlan } from "./bench_plan.ts";
import { withResults } from "./main.ts";
import { NULL_REPLY_IDS, NULL_REPLY_TEXT } from "./null_reply.ts";
import { promptText } from "./prompt_text.ts";
import { reportOf } from "./report.ts";
import { runBench } from "./run_bench.ts";
import { median, quantile } from "./statistics.ts";
import { qwen3Tokenizer } from "../fixtures/qwen3_tokenizer.ts";

const TINY_PLAN: BenchPlan = {
  warmUp: { sessions: 2, promptTokens: 1024, turnsPerSlice: 4, turnsPerTask: 3 },
  cells: [
    { sessions: 1, promptTokens: 1024, turnsPerSlice: 4, turnsPerTask: 3 },
    { sessions: 3, promptTokens: 2048, turnsPerSlice: 6, turnsPerTask: 3 },
  ],
  rounds: 2,
  cellMs: 60_000,
  sliceMs: 60_000,
  stall: { prompts: 2, promptTokens: 1024 },
  coldStarts: 1,
  longTask: { turns: 20, promptTokens: 4096, rounds: 1 },
  scan: { positions: 256, topK: 3, rounds: 1 },
  budgetMs: 60_000,
  deadlineMs: 120_000,
};

Deno.test("runBench measures every row of its plan without a failed request", async () => {
  const results = await runBench(TINY_PLAN, { signal: new AbortController().signal, note() {} });
  assert.deepEqual(results.failures, []);
  assert.deepEqual(results.rows.map(({ cell }) => cell), TINY_PLAN.cells);
  for (const { cell, turns, promptTokens, gateway, relay, ratio } of results.rows) {
    const first = Math.max(
      cell.sessions,
      Math.ceil(2 * cell.turnsPerSlice / cell.turnsPerTask * (cell.sessions > 1 ? 1.25 : 1)),
    );
    assert.equal(turns, 2 * (first + TINY_PLAN.rounds * cell.turnsPerSlice));
    assert.ok(Math.abs(promptTokens / cell.promptTokens - 1) < 0.1, `${promptTokens} for ${cell.promptTokens}`);
    for (const value of [gateway.p50Ms, gateway.p99Ms, gateway.turnsPerS, relay.p50Ms, relay.turnsPerS, ratio]) {
      assert.ok(value > 0);
    }
  }
  assert.ok(results.stall.gateway.polls > 0);
  const { tenth, last } = results.longTask.promptTokens;
  assert.ok(Math.abs(last / tenth - 1) < 0.02, `${tenth} and ${last} tokens are to be compared`);
  const report = reportOf(results, await benchMachine());
  for (
    const head of [
      "| 1 | 1k",
      "| 3 | 2k",
      "around turn 20",
      "longest wait",
      "memory after start",
      "A teacher's reply",
      "0 failed requests",
    ]
  ) {
    assert.ok(report.includes(head), `${head} is missing in\n${report}`);
  }
});

Deno.test("the null reply's tokens say its text and end a turn", async () => {
  const tokenizer = await qwen3Tokenizer();
  assert.equal(tokenizer.decode(NULL_REPLY_IDS.slice(0, -1)), NULL_REPLY_TEXT);
  assert.equal(NULL_REPLY_IDS.at(-1), tokenizer.eosId);
});

Deno.test("promptText has the length asked for and repeats for a seed alone", () => {
  assert.equal(promptText(5000, 1).length, 5000);
  assert.equal(promptText(5000, 1), promptText(5000, 1));
  assert.notEqual(promptText(5000, 1), promptText(5000, 2));
});

Deno.test("median and quantile are those of the sorted values", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.equal(quantile([5, 1, 4, 2, 3], 0.5), 3);
  assert.equal(quantile([1, 2], 0.99), 2);
});

Deno.test("withResults replaces what stands between the marks", () => {
  const readme = "a\n<!-- deno-fmt-ignore-start -->\nold\n<!-- deno-fmt-ignore-end -->\nb\n";
  const written = withResults(readme, "new");
  assert.equal(written, "a\n<!-- deno-fmt-ignore-start -->\n\nnew\n<!-- deno-fmt-ignore-end -->\nb\n");
  assert.equal(withResults(written, "new"), written);
});
