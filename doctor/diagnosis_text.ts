/** A diagnosis as text: what was found, a table of what was tried, one line that sums it up. */

import type { Diagnosis } from "./examine.ts";
import type { Finding } from "./finding.ts";

const VERDICTS: Readonly<Record<Finding["verdict"], string>> = {
  "passed": "passed     ",
  "failed": "FAILED     ",
  "not checked": "not checked",
};

export function diagnosisText({ about, findings, hint }: Diagnosis): string {
  const nameWidth = Math.max(...about.map(([name]) => name.length));
  const width = Math.max(...findings.map(({ name }) => name.length));
  const count = (verdict: Finding["verdict"]) => findings.filter((finding) => finding.verdict === verdict).length;
  const lines = [
    ...about.map(([name, value]) => `${name.padEnd(nameWidth)}  ${value}`),
    "",
    ...findings.map(({ name, verdict, note }) => {
      const line = `${VERDICTS[verdict]}  ${name.padEnd(width)}`;
      return note === "" ? line.trimEnd() : `${line}  ${note.replaceAll("\n", "\\n")}`;
    }),
    "",
    ...(hint === null || count("failed") === 0 ? [] : [hint, ""]),
    `${count("passed")} passed, ${count("failed")} failed, ${count("not checked")} not checked`,
  ];
  return `${lines.join("\n")}\n`;
}
