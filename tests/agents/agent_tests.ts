/** The tests of one agent: its job, the job with faults, and its job in a context too small for it. */

import assert from "node:assert/strict";
import type { Body } from "../e2e/harness.ts";
import { installAgent, type InstalledAgent } from "./agent_packages.ts";
import { assertEndedWell, runTrial, type Trial, type TrialOptions } from "./agent_trial.ts";
import type { CodingAgent } from "./coding_agent.ts";
import { assertDone, LAST_WORDS, SEEN, steadyRules, wakefulRules } from "./repair_job.ts";

/** What is expected of an agent. */
export interface Expected {
  /** Grades of the echoes, one a turn after the first. */
  readonly echoes: readonly string[];
  /** Calls beside the job: titles and the like. */
  readonly sideCalls: number;
  /** Calls repeated as they were, of the one that fails with a 500 and the one whose reply breaks off. */
  readonly retries: number;
  /** What a context error before the last turn leads to. */
  readonly contextError: Ending;
  /** What its compaction is taken for under `append_only`; null: it has none in one run. */
  readonly compaction: Ending | null;
}

/** How a run ends. */
export interface Ending {
  readonly exitCode: number;
  /** The reason against a result; null: there is one. */
  readonly reason: string | null;
  readonly notes: readonly string[];
}

/** Tokens by which the first prompt, or the last but one, is exceeded before the context is full. */
const ROOM_TOKENS = 2300;

/** Whatever was sampled trains. */
const EVERY_ROLE = ["main", "branch", "side", "superseded"];

/** Whether an agent is large: several hundred megabytes, so that it is only run where VERBATIM_ALL_AGENTS is 1. */
export type Size = "small" | "large";

/** Registers them. */
export function testAgent(agent: CodingAgent, size: Size, expected: Expected): void {
  const { name, version } = agent.package;
  const ignore = size === "large" && Deno.env.get("VERBATIM_ALL_AGENTS") !== "1";
  Deno.test({ name: `${name}@${version}`, ignore }, async (test) => {
    const installed = await installAgent(agent.package);
    if (installed.kind === "impossible") {
      await test.step(`left out: ${installed.reason}`, () => {});
      return;
    }
    const steps = new AgentSteps(agent, installed, expected);
    let job: Trial | null = null;
    await test.step("does its job on one line, side calls on roots of their own", async () => {
      job = await steps.job();
    });
    await test.step("goes on after a 500 and a stream that breaks off: one line, nothing twice", () => steps.faults());
    await test.step("is told that the context is full", () => steps.contextError(job));
    if (expected.compaction === null) return;
    const ending = expected.compaction;
    await test.step("shortens its history: append_only says so", () => steps.appendOnly(job, ending));
    await test.step("shortens its history: branch trains every sampled token once", () => steps.branch(job, ending));
  });
}

class AgentSteps {
  readonly #agent: CodingAgent;
  readonly #installed: Extract<InstalledAgent, { kind: "installed" }>;
  readonly #expected: Expected;

  constructor(agent: CodingAgent, installed: Extract<InstalledAgent, { kind: "installed" }>, expected: Expected) {
    this.#agent = agent;
    this.#installed = installed;
    this.#expected = expected;
  }

  async job(): Promise<Trial> {
    const trial = await this.#run({ rules: (work) => steadyRules(this.#agent.calls, work), check: assertDone });
    assertEndedWell(trial);
    assert.ok(trial.end.stdout.includes(LAST_WORDS), trial.end.stdout);
    this.#assertWhole(trial);
    assert.deepEqual(mainTurns(trial).map((turn) => turn.relation), ["root", "append", "append", "append", "append"]);
    assert.deepEqual(mainTurns(trial).slice(1).map((turn) => turn.echo), this.#expected.echoes);
    const side = trial.turns.filter((turn) => turn.role === "side");
    assert.equal(side.length, this.#expected.sideCalls);
    assert.ok(side.every((turn) => turn.parent === null));
    return trial;
  }

  async faults(): Promise<void> {
    const trial = await this.#run({
      rules: (work) => wakefulRules(this.#agent, work, "none"),
      faults: [
        { when: { promptTail: SEEN.broken, times: 1 }, fault: { kind: "http", status: 500 } },
        { when: { promptTail: SEEN.file, times: 1 }, fault: { kind: "cut", afterTokens: 12 } },
      ],
      check: assertDone,
    });
    assertEndedWell(trial);
    assert.deepEqual(trial.hits, [1, 1]);
    // How many turns follow is the agent's affair: some run the script again.
    const appends = mainTurns(trial).length - 1 - this.#expected.retries;
    this.#assertWhole(trial);
    const relations = mainTurns(trial).map((turn) => turn.relation);
    const sorted = [...Array(appends).fill("append"), ...Array(this.#expected.retries).fill("retry"), "root"];
    assert.deepEqual(relations.toSorted(), sorted);
  }

  async contextError(job: Trial | null): Promise<void> {
    const { exitCode, reason, notes } = this.#expected.contextError;
    const limit = promptTokens(job, 3) + ROOM_TOKENS;
    const trial = await this.#run({
      rules: (work) => wakefulRules(this.#agent, work, "last"),
      task: { max_context_tokens: limit },
      check: assertDone,
    });
    assert.deepEqual(endOf(trial), [exitCode, reason, notes], trial.end.stderr);
    assert.equal(trial.capture.valid, reason === null);
    // What was refused consumed nothing: no turn is longer than the limit.
    for (const turn of trial.turns) assert.ok(turn.prompt_tokens + turn.completion_tokens <= limit);
  }

  async appendOnly(job: Trial | null, { exitCode, reason, notes }: Ending): Promise<void> {
    const trial = await this.#compacted(job, { history: "append_only" });
    assert.deepEqual(endOf(trial), [exitCode, reason, notes], trial.end.stderr);
    assert.equal(trial.capture.valid, reason === null);
    if (reason !== null) assert.deepEqual([trial.finished.result, trial.rows], [null, []]);
  }

  async branch(job: Trial | null, { exitCode }: Ending): Promise<void> {
    const trial = await this.#compacted(job, { history: "branch", train_roles: EVERY_ROLE });
    assert.equal(trial.end.code, exitCode, trial.end.stderr);
    assert.equal(trial.capture.valid, true);
    assert.ok(trial.rows.length > 1);
    assert.equal(trainedTokens(trial), sampledTokens(trial));
  }

  #compacted(job: Trial | null, task: Record<string, unknown>): Promise<Trial> {
    return this.#run({
      rules: (work) => wakefulRules(this.#agent, work, "first"),
      compactAtTokens: promptTokens(job, 0) + ROOM_TOKENS,
      task,
      check: assertDone,
    });
  }

  #run(options: TrialOptions): Promise<Trial> {
    return runTrial(this.#agent, this.#installed, options);
  }

  /** The main line is the job, whole: what was sampled there, and nothing else, trains. */
  #assertWhole(trial: Trial): void {
    mainTurns(trial).forEach((turn, k, turns) => assert.equal(turn.parent, turns[k - 1]?.turn ?? null));
    assert.ok(trial.turns.every((turn) => turn.role === "main" || turn.role === "side"));
    assert.deepEqual([trial.finished.reason, trial.finished.notes], [null, []]);
    assert.equal(trial.capture.valid, true);
    assert.deepEqual(trial.rows[0].path, mainTurns(trial).map((turn) => turn.turn));
    const region = trial.finished.result;
    const trained = region.loss_mask.reduce((sum: number, bit: number) => sum + bit, 0);
    assert.equal(trained, mainTurns(trial).reduce((sum, turn) => sum + turn.completion_tokens, 0));
    assert.deepEqual(region.prompt_token_ids.concat(region.completion_token_ids), trial.rows[0].tokens);
  }
}

function mainTurns(trial: Trial): Body[] {
  return trial.turns.filter((turn) => turn.role === "main");
}

function endOf({ end, finished }: Trial): unknown[] {
  return [end.code, finished.reason, finished.notes];
}

function promptTokens(job: Trial | null, turn: number): number {
  assert.ok(job !== null, "The job itself failed: its lengths are not known");
  return mainTurns(job)[turn].prompt_tokens;
}

function trainedTokens({ rows }: Trial): number {
  return rows.reduce((sum, row) => sum + row.trained_tokens, 0);
}

function sampledTokens({ turns }: Trial): number {
  return turns.reduce((sum, turn) => sum + turn.completion_tokens, 0);
}
