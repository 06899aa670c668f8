/** What the embedded engine's model says in the demo. Its tokens get their logprobs from the model's own distribution. */

import type { Script } from "../shared/engine/script.ts";

/** The user's words, by which the script knows the job. */
export const JOB = "The check in this folder fails. Find out why, repair it, and show that it passes.";

const REPAIRED = `export function mean(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}
`;

/** Seven turns: two calls at once in the second, one of which fails; a failing run; a repair; a passing run. */
export const DEMO_SCRIPT: Script = {
  rules: [{
    match: JOB,
    completions: [
      think("I should look at the folder first.") + "Let me see what is here.\n" + call("list_files", {}),
      think("Two files. I read the module, and there may be notes.") +
      call("read_file", { path: "stats.mjs" }) + "\n" + call("read_file", { path: "NOTES.md" }),
      think("No notes. Run the check to see the failure.") + call("run", { path: "check.mjs" }),
      think("The loop starts at 1, so the first value is never added.") +
      "The loop skips the first value. I rewrite it.\n" + call("write_file", { path: "stats.mjs", content: REPAIRED }),
      call("run", { path: "check.mjs" }),
      think("It passes.") +
      "Repaired: `mean` skipped the first value because its loop began at index 1. The check passes now. ✓",
    ],
  }],
};

function think(text: string): string {
  return `<think>\n${text}\n</think>\n\n`;
}

/** Spaced as models write JSON: a client that echoes it re-serialised must not break the series. */
function call(name: string, args: Record<string, string>): string {
  const fields = Object.entries(args).map(([field, value]) => `${JSON.stringify(field)}: ${JSON.stringify(value)}`);
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": {${fields.join(", ")}}}\n</tool_call>`;
}
