/** The job that every agent does: a script gives a wrong sum; run it, read it, repair it, run it again. */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { ScriptContext, ScriptRule } from "../../shared/engine/script.ts";
import { think } from "../e2e/replies.ts";
import type { CodingAgent, ToolCalls } from "./coding_agent.ts";

/** What starts it. */
export const REQUEST = "Repair total.mjs: it must print 42. Run it to see that it does.";
/** Its last words. */
export const LAST_WORDS = "It prints 42 now: the sum began at one – “off by one”.";

/** Long enough that reading it fills a small context. */
const COMMENT = Array.from({ length: 100 }, (_, k) => `// line ${k} of a long comment\n`).join("");

const BROKEN = `${COMMENT}import { writeFileSync } from "node:fs";
let total = 1;
for (const n of [20, 12, 10]) total += n;
writeFileSync("result.txt", String(total));
console.log(\`\${total === 42 ? "good" : "bad"}: \${total}\`);
// Sums a list. (file seen)
`;

/** More replies than any of these jobs takes. */
const MOST_TURNS = 20;

/** Texts that the newest message holds first at each turn after the first. */
export const SEEN = { broken: "bad: 43", file: "(file seen)", repaired: "good: 42" } as const;

/** Prints some nine thousand tokens. */
const MUCH = "seq -s ' ' 1 2000";
/** Prints about sixteen hundred. */
const MORE = "seq -f 'line %g of the list' 1 200";
/** Stands in the summary that the model gives of a history. */
const SUMMARY_MARK = "total.mjs was run and gave one too many.";

/** Some agents ask for a title, in a conversation of its own. */
const TITLE: ScriptRule = { match: /Generate a title/, completions: ["A sum that is one too many"] };

/** The model's replies to the job, in order: four with a call, then words. */
function repliesOf(calls: ToolCalls, work: string): string[] {
  const { look, read, edit, run, end } = steps(calls, work);
  return [look, read, edit, run, end];
}

/** Says the replies in order. */
export function steadyRules(calls: ToolCalls, work: string): ScriptRule[] {
  return [TITLE, { match: REQUEST, completions: repliesOf(calls, work) }];
}

/** Which output is long: of the first run, to be too long with the file; of the last, too long by itself; of none. */
export type LongOutput = "first" | "last" | "none";

/** Looks at the newest message alone, so that it goes on where a history was changed; sums it up where asked to. */
export function wakefulRules(agent: CodingAgent, work: string, long: LongOutput): ScriptRule[] {
  const { look, read, edit, run, end } = steps(agent.calls, work);
  const first = long === "first" ? agent.calls.run(`node total.mjs && ${MORE}`) : look;
  const last = long === "last" ? agent.calls.run(`node total.mjs && ${MUCH}`) : run;
  const goesOn = agent.goesOn === null ? "" : `|${agent.goesOn.source}`;
  const resumes = new RegExp(RegExp.escape(SUMMARY_MARK) + goesOn);
  function next({ newest, trigger, turn }: ScriptContext): string {
    // The long output came before the summary: the job is done.
    if (long === "last" && resumes.test(trigger)) return end;
    if (resumes.test(newest)) return read;
    if (turn === 0) return first;
    if (newest.includes(SEEN.repaired)) return end;
    if (newest.includes(SEEN.broken)) return read;
    // It is the edit that is cut off.
    if (/dropped|cut off|interrupted/.test(newest)) return edit;
    return newest.includes(SEEN.file) && !newest.includes("naught") ? edit : last;
  }
  const summary = `<summary>${SUMMARY_MARK} It is to be read and repaired.</summary>`;
  return [
    TITLE,
    { match: agent.asksForSummary, completions: [summary], retrigger: true },
    {
      match: new RegExp(`${RegExp.escape(REQUEST)}|${resumes.source}`),
      completions: Array(MOST_TURNS).fill(next),
    },
  ];
}

function steps(calls: ToolCalls, work: string): Record<"look" | "read" | "edit" | "run" | "end", string> {
  const path = join(work, "total.mjs");
  return {
    look: think("First I run it as it is.\nThen I see.\n") + "\n\nLet me run it. \n\n" +
      calls.run("node total.mjs"),
    read: think("43 is one too many.") + calls.read(path),
    edit: think("It begins at 1.") + "That is where it goes wrong:\n" +
      calls.edit(path, { from: "let total = 1;", to: "let total = 0; // – naught" }),
    run: calls.run("node total.mjs"),
    end: think("Done.") + LAST_WORDS,
  };
}

/** Puts the job's files in place. */
export async function layOut(work: string): Promise<void> {
  await Deno.writeTextFile(join(work, "total.mjs"), BROKEN);
}

/** The script was repaired where it was wrong, and run afterwards. */
export async function assertDone(work: string): Promise<void> {
  const repaired = BROKEN.replace("let total = 1;", "let total = 0; // – naught");
  assert.equal(await Deno.readTextFile(join(work, "total.mjs")), repaired);
  assert.equal(await Deno.readTextFile(join(work, "result.txt")), "42");
}
