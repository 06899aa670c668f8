/**
 * `deno task bench`: runs the bench and prints its tables. `--quick` runs a small one, `--only NAME` one scenario (may be
 * given again), `--write` keeps the tables in README.md.
 */

import { parseArgs } from "node:util";
import { benchMachine } from "./bench_machine.ts";
import { FULL_PLAN, QUICK_PLAN } from "./bench_plan.ts";
import { reportOf } from "./report.ts";
import { runBench, type ScenarioName, SCENARIOS } from "./run_bench.ts";

const MARKS = { start: "<!-- deno-fmt-ignore-start -->\n", end: "<!-- deno-fmt-ignore-end -->" };

/** The README's text with other results in it. */
export function withResults(readme: string, results: string): string {
  const start = readme.indexOf(MARKS.start);
  const end = readme.indexOf(MARKS.end);
  if (start < 0 || end < start) throw new Error("README.md has no place for results");
  return `${readme.slice(0, start)}${MARKS.start}\n${results}\n${readme.slice(end)}`;
}

/** What the command line asks for. Unknown scenarios, and a part of the tables to be written, are errors. */
export function readArguments(args: readonly string[]): {
  readonly quick: boolean;
  readonly write: boolean;
  readonly only: ReadonlySet<ScenarioName>;
} {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      only: { type: "string", multiple: true },
    },
  });
  const only = (values.only ?? []).map((asked) => {
    const name = SCENARIOS.find((scenario) => scenario === asked);
    if (name === undefined) throw new Error(`There is no scenario "${asked}": ${SCENARIOS.join(", ")}`);
    return name;
  });
  if (values.write && only.length > 0) throw new Error("--write keeps whole results: leave --only out");
  return { quick: values.quick, write: values.write, only: new Set(only.length === 0 ? SCENARIOS : only) };
}

async function main(args: readonly string[]): Promise<void> {
  const { quick, write: isKept, only } = readArguments(args);
  const stop = new AbortController();
  const onStop = () => stop.abort(new Error("The bench was stopped"));
  Deno.addSignalListener("SIGINT", onStop);
  try {
    const results = await runBench(quick ? QUICK_PLAN : FULL_PLAN, { only, signal: stop.signal, note });
    const report = reportOf(results, await benchMachine());
    await Deno.stdout.write(new TextEncoder().encode(`${report}\n`));
    for (const failure of new Set(results.failures)) note(`failed: ${failure}`);
    if (results.failures.length > 0) Deno.exitCode = 1;
    else if (isKept) await write(report);
  } finally {
    Deno.removeSignalListener("SIGINT", onStop);
  }
}

async function write(report: string): Promise<void> {
  const readme = new URL("README.md", import.meta.url);
  await Deno.writeTextFile(readme, withResults(await Deno.readTextFile(readme), report));
}

function note(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) await main(Deno.args);
