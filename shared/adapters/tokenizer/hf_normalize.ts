/**
 * Unicode normalization in linear time. The host's own takes the square of the length of a run of combining marks that
 * stand out of order, and a tool result of a few kilobytes can be one such run. It knows no vocabulary.
 */

/** Shorter runs are the host's business. U+FF9E and U+FF9F become marks under the K forms. */
const LONG_RUNS = /[\p{M}\uff9e\uff9f]{64,}/gu;
/** The lowest and the highest combining class: anything else with a class changes places with one of them. */
const LOWEST = "\u0334";
const HIGHEST = "\u0345";

export type NormalizationForm = "NFC" | "NFD" | "NFKC" | "NFKD";

/** The same text as `text.normalize(form)`. */
export function normalizeText(text: string, form: NormalizationForm): string {
  const decomposed = form === "NFKC" || form === "NFKD" ? "NFKD" : "NFD";
  return text.replace(LONG_RUNS, (run) => inCanonicalOrder(run, decomposed)).normalize(form);
}

/** The run's marks decomposed one by one, and those between two starters sorted by class, equals as they stood. */
function inCanonicalOrder(run: string, decomposed: "NFD" | "NFKD"): string {
  const parts = new Map<string, readonly string[]>();
  const marks: string[] = [];
  for (const mark of run) {
    let own = parts.get(mark);
    if (own === undefined) {
      own = [...mark.normalize(decomposed)];
      parts.set(mark, own);
    }
    marks.push(...own);
  }
  const ranks = ranksOf(new Set(marks));
  let sorted = "";
  let buckets: string[] = [];
  for (const mark of marks) {
    const rank = ranks.get(mark) ?? 0;
    if (rank > 0) {
      buckets[rank] = (buckets[rank] ?? "") + mark;
      continue;
    }
    sorted += buckets.join("") + mark;
    buckets = [];
  }
  return sorted + buckets.join("");
}

/** Ranks from 1 in the order of combining classes; 0 for starters, which nothing passes. */
function ranksOf(marks: ReadonlySet<string>): Map<string, number> {
  const ranks = new Map<string, number>();
  const classed = [...marks].filter((mark) => isPassed(mark, LOWEST) || isPassed(HIGHEST, mark));
  classed.sort(compareClasses);
  let rank = 0;
  let before: string | null = null;
  for (const mark of classed) {
    if (before === null || compareClasses(before, mark) !== 0) rank++;
    ranks.set(mark, rank);
    before = mark;
  }
  return ranks;
}

function compareClasses(one: string, other: string): number {
  if (isPassed(one, other)) return 1;
  return isPassed(other, one) ? -1 : 0;
}

/** Whether the second, written after the first, comes before it in canonical order. */
function isPassed(first: string, second: string): boolean {
  return first !== second && (first + second).normalize("NFD") === second + first;
}
