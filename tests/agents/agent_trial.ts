/** A run of an agent on a task of its own, and what is recorded of it. */

import assert from "node:assert/strict";
import type { FaultRule } from "../../shared/engine/fault.ts";
import type { ScriptRule } from "../../shared/engine/script.ts";
import { checkRowsByForceDecoding } from "../e2e/force_decode.ts";
import { type Body, startHarness } from "../e2e/harness.ts";
import type { InstalledAgent } from "./agent_packages.ts";
import type { CodingAgent } from "./coding_agent.ts";
import { layOut, REQUEST } from "./repair_job.ts";
import { runAgent, type RunEnd } from "./run_agent.ts";

/** What may differ from run to run. */
export interface TrialOptions {
  /** The scripted model, given the work folder. */
  readonly rules: (work: string) => readonly ScriptRule[];
  /** What goes wrong with the engine. */
  readonly faults?: readonly FaultRule[];
  /** Fields of `POST /tasks`. */
  readonly task?: Record<string, unknown>;
  /** When the agent is to shorten its history. Default: never. */
  readonly compactAtTokens?: number;
  /** Looks at the work folder after the run. */
  readonly check?: (work: string) => Promise<void>;
}

/** What became of it. */
export interface Trial {
  readonly end: RunEnd;
  /** As `GET /tasks/ID/turns` lists them. */
  readonly turns: readonly Body[];
  readonly decisions: readonly Body[];
  /** The answer of `finish`: the region. */
  readonly finished: Body;
  readonly capture: Body;
  /** Rows of every role. */
  readonly rows: readonly Body[];
  /** How often each fault has hit. */
  readonly hits: readonly number[];
}

const EVERY_ROLE = "main,branch,side,superseded";

/** Runs it, finishes the task, and checks every exported row on the engine, token by token. */
export async function runTrial(
  agent: CodingAgent,
  installed: Extract<InstalledAgent, { kind: "installed" }>,
  options: TrialOptions,
): Promise<Trial> {
  const root = await Deno.makeTempDir({ prefix: "verbatim-agent-" });
  const places = { home: `${root}/home`, work: `${root}/work` };
  await Deno.mkdir(places.home);
  await Deno.mkdir(places.work);
  try {
    await layOut(places.work);
    await using harness = await startHarness({
      engine: { script: { rules: options.rules(places.work) } },
    });
    const { engine } = harness.development;
    for (const fault of options.faults ?? []) engine.faults.add(fault);
    const task = await harness.createTask(options.task);
    const launch = await agent.launch(REQUEST, places, {
      openaiBaseUrl: `${harness.url}/v1`,
      anthropicBaseUrl: harness.url,
      key: task.key,
      compactAtTokens: options.compactAtTokens ?? null,
    });
    const end = await runAgent(launch, places, installed);
    const hits = engine.faults.list().map((fault) => fault.hits);
    engine.faults.clear();
    const turns = await harness.turns(task.id);
    const decisions = await harness.decisions(task.id);
    const finished = (await harness.admin("POST", `/tasks/${task.id}/finish`, { reward: 1 })).body;
    const { capture } = await harness.task(task.id);
    const { body } = await harness.admin("GET", `/tasks/${task.id}/result?format=rows&roles=${EVERY_ROLE}`);
    await options.check?.(places.work);
    await checkRowsByForceDecoding(harness.development.services.models.default.engine, body.rows);
    return { end, turns, decisions, finished, capture, rows: body.rows, hits };
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** The run ended well; what it said otherwise is shown. */
export function assertEndedWell({ end }: Trial): void {
  assert.equal(end.code, 0, `exit ${end.code}\n${end.stdout}\n${end.stderr}`);
}
