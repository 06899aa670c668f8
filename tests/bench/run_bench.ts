/** All scenarios, one after the other. */

import type { BenchPlan, OverheadCell } from "./bench_plan.ts";
import { type BenchTargets, startTargets } from "./bench_targets.ts";
import { type ColdStart, measureColdStart } from "./cold_start_scenario.ts";
import { type FirstDeltaRow, measureFirstDelta } from "./first_delta_scenario.ts";
import { type LongTaskResults, measureLongTask } from "./long_task_scenario.ts";
import { measureOverhead, type OverheadRow } from "./overhead_scenario.ts";
import { measureSizes, type PromptSizes } from "./prompt_sizes.ts";
import { measureScan, type ScanResults } from "./scan_scenario.ts";
import { measureStall, type StallFigures } from "./stall_scenario.ts";

/** What can be run by itself, in the order in which it is run. */
export const SCENARIOS = ["cold-start", "teacher-reply", "event-loop", "long-task", "first-delta", "turns"] as const;

/** One of them. */
export type ScenarioName = typeof SCENARIOS[number];

/** Everything that was measured; of scenarios that were left out nothing. */
export interface BenchResults {
  readonly plan: BenchPlan;
  readonly rows: readonly OverheadRow[];
  /** Cells that there was no time for. */
  readonly skipped: readonly OverheadCell[];
  readonly stall: { readonly gateway: StallFigures; readonly relay: StallFigures } | null;
  readonly coldStarts: readonly ColdStart[];
  readonly longTask: LongTaskResults | null;
  readonly firstDelta: readonly FirstDeltaRow[];
  readonly scan: ScanResults | null;
  /** The gateway's resident memory after the runs; null where the system does not tell. */
  readonly rssAfterRunsBytes: number | null;
  readonly failures: readonly string[];
  /** What else the machine was doing: its load average before. */
  readonly loadBefore: number;
  readonly elapsedMs: number;
}

/** What is known of a run under way. */
interface Run {
  readonly plan: BenchPlan;
  readonly targets: BenchTargets;
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly note: (line: string) => void;
}

/** Runs the scenarios of a plan. `note` is told what comes next. Processes and files are gone when it resolves or rejects. */
export async function runBench(
  plan: BenchPlan,
  options: {
    readonly only: ReadonlySet<ScenarioName>;
    readonly signal: AbortSignal;
    readonly note: (line: string) => void;
  },
): Promise<BenchResults> {
  const { only, note } = options;
  const startedAt = performance.now();
  const loadBefore = Deno.loadavg()[0] ?? 0;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(plan.deadlineMs)]);
  const folder = await Deno.makeTempDir({ prefix: "verbatim-bench-" });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const targets = stack.use(await startTargets(folder));
  const run: Run = { plan, targets, folder, signal, note };

  const coldStarts = only.has("cold-start") ? await startOften(run) : [];
  const scan = only.has("teacher-reply") ? await readReply(run) : null;
  const sizes = await measureSizes(targets.gateway.process.url);
  note("warm-up");
  const warmUp = await measureOverhead(targets, plan.warmUp, { plan, sizes, signal });
  const stall = only.has("event-loop") ? await watchEventLoops(run, sizes) : null;
  const longTask = only.has("long-task") ? await runLongTask(run, sizes) : null;
  const firstDelta: FirstDeltaRow[] = [];
  for (const promptTokens of only.has("first-delta") ? plan.firstDelta.promptTokens : []) {
    note(`first deltas, prompts of ${promptTokens} tokens`);
    firstDelta.push(await measureFirstDelta(targets, promptTokens, { plan: plan.firstDelta, sizes, signal }));
  }
  const rows: OverheadRow[] = [];
  const skipped: OverheadCell[] = [];
  for (const cell of only.has("turns") ? plan.cells : []) {
    if (performance.now() - startedAt > plan.budgetMs) {
      skipped.push(cell);
      continue;
    }
    note(`${cell.sessions} sessions, prompts of ${cell.promptTokens} tokens`);
    rows.push(await measureOverhead(targets, cell, { plan, sizes, signal }));
  }
  const failures = [
    ...[warmUp, ...rows, ...firstDelta].flatMap((row) => row.failures),
    ...stall?.gateway.failures ?? [],
    ...stall?.relay.failures ?? [],
    ...longTask?.failures ?? [],
  ];
  if (failures.length > 0) targets.gateway.process.lastLines.forEach(note);
  return {
    plan,
    rows,
    skipped,
    stall,
    coldStarts,
    longTask,
    firstDelta,
    scan,
    rssAfterRunsBytes: targets.gateway.process.usage()?.rssBytes ?? null,
    failures,
    loadBefore,
    elapsedMs: performance.now() - startedAt,
  };
}

async function startOften({ plan, targets, folder, signal, note }: Run): Promise<ColdStart[]> {
  const starts: ColdStart[] = [];
  for (let start = 0; start < plan.coldStarts; start++) {
    note(`cold start ${start + 1}`);
    starts.push(await measureColdStart(targets.engine.url, { kvPath: `${folder}/cold-${start}.sqlite`, signal }));
  }
  return starts;
}

function readReply({ plan, folder, signal, note }: Run): Promise<ScanResults> {
  note(`a teacher's reply of ${plan.scan.positions} positions`);
  return measureScan(plan.scan, { folder, signal });
}

async function watchEventLoops(
  { plan, targets, signal, note }: Run,
  sizes: PromptSizes,
): Promise<{ gateway: StallFigures; relay: StallFigures }> {
  note(`${plan.stall.prompts} first prompts of ${plan.stall.promptTokens} tokens at once`);
  return {
    gateway: await measureStall(targets.gateway, { plan, sizes, signal }),
    relay: await measureStall(targets.relay, { plan, sizes, signal }),
  };
}

function runLongTask({ plan, targets, signal, note }: Run, sizes: PromptSizes): Promise<LongTaskResults> {
  note(`a task of ${plan.longTask.turns} turns`);
  return measureLongTask(targets, { plan: plan.longTask, sizes, signal });
}
