/** The bench runs: every row is there and nothing fails. How fast it was decides nothing. */

import assert from "node:assert/strict";
import { benchMachine } from "./bench_machine.ts";
import type { BenchPlan } from "./bench_plan.ts";
import { readArguments, withResults } from "./main.ts";
import { NULL_REPLY_CUTS, NULL_REPLY_IDS, NULL_REPLY_TEXT } from "./null_reply.ts";
import { arrivals } from "./paced_load.ts";
import { promptText } from "./prompt_text.ts";
import { reportOf } from "./report.ts";
import { runBench, SCENARIOS } from "./run_bench.ts";
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
  firstDelta: {
    promptTokens: [1024],
    sessions: 3,
    sliceMs: 300,
    turnsPerTask: 3,
    rounds: 2,
    calibrationTurns: 3,
    mostCpuShare: 0.3,
  },
  scan: { positions: 256, topK: 3, rounds: 1 },
  budgetMs: 60_000,
  deadlineMs: 120_000,
};

Deno.test("runBench measures every row of its plan without a failed request", async () => {
  const only = new Set(SCENARIOS);
  const results = await runBench(TINY_PLAN, { only, signal: new AbortController().signal, note() {} });
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
  const { stall, longTask, firstDelta } = results;
  assert.ok(stall !== null && longTask !== null && results.scan !== null);
  assert.ok(stall.gateway.polls > 0);
  for (const { tenth, last } of [longTask.promptTokens, longTask.gateway.requestBytes, longTask.relay.requestBytes]) {
    assert.ok(Math.abs(last / tenth - 1) < 0.01, `${tenth} and ${last} are to be compared`);
  }
  assert.ok(longTask.relay.ratio > 0);
  assert.deepEqual(firstDelta.map(({ promptTokens }) => promptTokens), TINY_PLAN.firstDelta.promptTokens);
  for (const { engine, relay, gateway, added, turns, turnsPerSlice } of firstDelta) {
    assert.equal(turns, 3 * (TINY_PLAN.firstDelta.calibrationTurns + TINY_PLAN.firstDelta.rounds * turnsPerSlice));
    for (const { p50Ms, p99Ms, wholeP50Ms } of [engine, relay, gateway]) {
      assert.ok(p50Ms > 0 && p99Ms > 0 && wholeP50Ms > 0);
    }
    for (const { p50Ms, p99Ms } of [added.relay, added.gateway]) assert.ok(Number.isFinite(p50Ms + p99Ms));
  }
  const report = reportOf(results, await benchMachine());
  for (
    const head of [
      "| 1 | 1k",
      "| 3 | 2k",
      "gateway adds, p50 ms",
      "around turn 20",
      "relay, a turn, ms",
      "longest wait",
      "memory after start",
      "A teacher's reply",
      "0 failed requests",
    ]
  ) {
    assert.ok(report.includes(head), `${head} is missing in\n${report}`);
  }
});

Deno.test("runBench measures the scenarios asked for and the report has their tables alone", async () => {
  const only = new Set(["long-task"] as const);
  const results = await runBench(TINY_PLAN, { only, signal: new AbortController().signal, note() {} });
  assert.deepEqual(results.failures, []);
  const report = reportOf(results, await benchMachine());
  assert.match(report, /around turn 20/);
  assert.doesNotMatch(report, /first delta|\*\*Turns|cold start|teacher/);
});

Deno.test("readArguments takes every scenario unless some are named, and refuses unknown ones and parts to be written", () => {
  assert.deepEqual([...readArguments([]).only], [...SCENARIOS]);
  const only = readArguments(["--only", "long-task", "--only", "first-delta", "--quick"]);
  assert.deepEqual([...only.only], ["long-task", "first-delta"]);
  assert.ok(only.quick && !only.write);
  assert.throws(() => readArguments(["--only", "long"]), /There is no scenario "long": cold-start, /);
  assert.throws(() => readArguments(["--only", "turns", "--write"]), /leave --only out/);
});

Deno.test("arrivals come one in each interval of the pace, the same for a seed", () => {
  const pace = { turns: 50, turnsPerS: 20, seed: 1 };
  const times = arrivals(pace);
  assert.deepEqual(times.map((time) => Math.floor(time / 50)), Array.from({ length: 50 }, (_, turn) => turn));
  assert.deepEqual(arrivals(pace), times);
  assert.notDeepEqual(arrivals({ ...pace, seed: 2 }), times);
});

Deno.test("the null reply's tokens say its text and end a turn, at every cut", async () => {
  const tokenizer = await qwen3Tokenizer();
  for (const { tokens, characters } of NULL_REPLY_CUTS.slice(0, -1)) {
    assert.equal(tokenizer.decode(NULL_REPLY_IDS.slice(0, tokens)), NULL_REPLY_TEXT.slice(0, characters));
  }
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
