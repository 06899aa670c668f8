/** All scenarios, one after the other. */

import type { BenchPlan, OverheadCell } from "./bench_plan.ts";
import { startTargets } from "./bench_targets.ts";
import { type ColdStart, measureColdStart } from "./cold_start_scenario.ts";
import { measureOverhead, type OverheadRow } from "./overhead_scenario.ts";
import { type LongTaskFigures, measureLongTask } from "./long_task_scenario.ts";
import { measureScan, type ScanResults } from "./scan_scenario.ts";
import { measureSizes } from "./prompt_sizes.ts";
import { measureStall, type StallFigures } from "./stall_scenario.ts";

/** Everything that was measured. */
export interface BenchResults {
  readonly plan: BenchPlan;
  readonly rows: readonly OverheadRow[];
  /** Cells that there was no time for. */
  readonly skipped: readonly OverheadCell[];
  readonly stall: { readonly gateway: StallFigures; readonly relay: StallFigures };
  readonly coldStarts: readonly ColdStart[];
  readonly longTask: LongTaskFigures;
  readonly scan: ScanResults;
  /** The gateway's resident memory after the runs; null where the system does not tell. */
  readonly rssAfterRunsBytes: number | null;
  readonly failures: readonly string[];
  /** What else the machine was doing: its load average before. */
  readonly loadBefore: number;
  readonly elapsedMs: number;
}

/** Runs a plan. `note` is told what comes next. Processes and files are gone when it resolves or rejects. */
export async function runBench(
  plan: BenchPlan,
  options: { readonly signal: AbortSignal; readonly note: (line: string) => void },
): Promise<BenchResults> {
  const { note } = options;
  const startedAt = performance.now();
  const loadBefore = Deno.loadavg()[0] ?? 0;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(plan.deadlineMs)]);
  const folder = await Deno.makeTempDir({ prefix: "verbatim-bench-" });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const targets = stack.use(await startTargets(folder));

  const coldStarts: ColdStart[] = [];
  for (let start = 0; start < plan.coldStarts; start++) {
    note(`cold start ${start + 1}`);
    const kvPath = `${folder}/cold-${start}.sqlite`;
    coldStarts.push(await measureColdStart(targets.engine.url, { kvPath, signal }));
  }
  note(`a teacher's reply of ${plan.scan.positions} positions`);
  const scan = await measureScan(plan.scan, { folder, signal });
  const sizes = await measureSizes(targets.gateway.process.url);
  note("warm-up");
  const warmUp = await measureOverhead(targets, plan.warmUp, { plan, sizes, signal });
  note(`${plan.stall.prompts} first prompts of ${plan.stall.promptTokens} tokens at once`);
  const stall = {
    gateway: await measureStall(targets.gateway, { plan, sizes, signal }),
    relay: await measureStall(targets.relay, { plan, sizes, signal }),
  };
  note(`a task of ${plan.longTask.turns} turns`);
  const longTask = await measureLongTask(targets.gateway, { plan: plan.longTask, sizes, signal });
  const rows: OverheadRow[] = [];
  const skipped: OverheadCell[] = [];
  for (const cell of plan.cells) {
    if (performance.now() - startedAt > plan.budgetMs) {
      skipped.push(cell);
      continue;
    }
    note(`${cell.sessions} sessions, prompts of ${cell.promptTokens} tokens`);
    rows.push(await measureOverhead(targets, cell, { plan, sizes, signal }));
  }
  const failures = [
    ...[warmUp, ...rows].flatMap((row) => row.failures),
    ...stall.gateway.failures,
    ...stall.relay.failures,
    ...longTask.failures,
  ];
  if (failures.length > 0) targets.gateway.process.lastLines.forEach(note);
  return {
    plan,
    rows,
    skipped,
    stall,
    coldStarts,
    longTask,
    scan,
    rssAfterRunsBytes: targets.gateway.process.usage()?.rssBytes ?? null,
    failures,
    loadBefore,
    elapsedMs: performance.now() - startedAt,
  };
}
