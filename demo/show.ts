/** Shows what was captured: turns as a table, tokens as text with sampled and observed ones told apart. */

import type { Tokenizer } from "../shared/ports/tokenizer.ts";

/** What a region holds, as far as it is shown. */
export interface ShownRegion {
  readonly prompt_token_ids: readonly number[];
  readonly completion_token_ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly loss_mask: readonly number[];
}

/** One row of the table. */
export type ShownRow = Readonly<Record<string, string | number>>;

/** How kinds of tokens are marked. */
interface Marks {
  readonly sampled: readonly [before: string, after: string];
  readonly observed: readonly [before: string, after: string];
}

const COLOURS: Marks = { sampled: ["\x1b[32m", "\x1b[0m"], observed: ["\x1b[2m", "\x1b[0m"] };
const PLAIN: Marks = { sampled: ["⟦", "⟧"], observed: ["", ""] };

/** Rows as a table of columns as wide as they need to be. */
export function tableText(rows: readonly ShownRow[]): string {
  const [first] = rows;
  if (first === undefined) return "";
  const columns = Object.keys(first);
  const widths = columns.map((name) => Math.max(name.length, ...rows.map((row) => String(row[name]).length)));
  const line = (cells: readonly (string | number | undefined)[]) =>
    cells.map((cell, k) =>
      typeof cell === "number" ? String(cell).padStart(widths[k]!) : String(cell).padEnd(widths[k]!)
    )
      .join("  ").trimEnd();
  return [
    line(columns),
    line(widths.map((width) => "─".repeat(width))),
    ...rows.map((row) => line(columns.map((name) => row[name]))),
  ]
    .join("\n");
}

/** The token stream as text: sampled tokens green (or in brackets), observed ones dim. */
export function streamText(region: ShownRegion, tokenizer: Tokenizer, options: { colours: boolean }): string {
  const marks = options.colours ? COLOURS : PLAIN;
  const parts = [marked(tokenizer.decode(region.prompt_token_ids), marks.observed)];
  const { completion_token_ids: ids, loss_mask: mask } = region;
  for (let start = 0; start < ids.length;) {
    let end = start;
    while (end < ids.length && mask[end] === mask[start]) end++;
    parts.push(marked(tokenizer.decode(ids.slice(start, end)), mask[start] === 1 ? marks.sampled : marks.observed));
    start = end;
  }
  return parts.join("");
}

/** What the marks mean, in themselves. */
export function legendText(options: { colours: boolean }): string {
  const marks = options.colours ? COLOURS : PLAIN;
  return `${marked("sampled by the policy (mask 1)", marks.sampled)}  ${marked("observed (mask 0)", marks.observed)}`;
}

/** Marks line by line: a colour that spans lines is lost in many pagers. */
function marked(text: string, [before, after]: readonly [string, string]): string {
  if (before === "\x1b[32m" || before === "\x1b[2m") {
    return text.split("\n").map((line) => line === "" ? "" : before + line + after).join("\n");
  }
  return before + text + after;
}
