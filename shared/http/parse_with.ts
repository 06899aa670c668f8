/** Checks a value with a schema and says what is wrong in Verbatim's words. */

import type { z } from "zod";
import { VerbatimError } from "../core/errors.ts";

/** The schema's output. `where` names the place (`body`, `query`) for messages about the whole value. */
export function parseWith<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const parsed = safeParse(schema, value, where);
  if (parsed.success) return parsed.data;
  const { path, message, unknown } = findingOf(parsed.error.issues[0]!, []);
  const name = path.map(String).join(".");
  if (unknown.length > 0) {
    const field = [...path.map(String), unknown[0]].join(".");
    throw new VerbatimError("unknown_field", `Unknown field "${field}" in the ${where}`, {
      details: { field, fields: unknown },
    });
  }
  const field = name === "" ? null : name;
  throw new VerbatimError("invalid_request", `${field === null ? `The ${where}` : `Field "${field}"`}: ${message}`, {
    details: { field, reason: message },
  });
}

/** Schemas of any JSON take a value apart by recursion: one that is nested too deeply for that is the caller's mistake. */
function safeParse<T extends z.ZodType>(schema: T, value: unknown, where: string): z.ZodSafeParseResult<z.output<T>> {
  try {
    return schema.safeParse(value);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new VerbatimError("invalid_request", `The ${where} is nested too deeply`, {
      details: { field: null, reason: "nested too deeply" },
    });
  }
}

/** What is wrong, and where. */
interface Finding {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** Fields that should not be there. */
  readonly unknown: readonly string[];
}

/**
 * Of a union, the finding of the branch that got furthest: it is most likely the one that was meant. Where none got
 * anywhere, all their reasons.
 */
function findingOf(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): Finding {
  const path = [...above, ...issue.path];
  if (issue.code === "unrecognized_keys") return { path, message: issue.message, unknown: issue.keys };
  if (issue.code !== "invalid_union") return { path, message: issue.message, unknown: [] };
  const branches = issue.errors.filter((branch) => branch.length > 0)
    .sort((left, right) => left.length - right.length)
    .map((branch) => findingOf(branch[0]!, path));
  let best: Finding | null = null;
  for (const finding of branches) if (best === null || depthOf(finding) > depthOf(best)) best = finding;
  if (best !== null && depthOf(best) > path.length) return best;
  const reasons = [...new Set(branches.map((finding) => finding.message))];
  return { path, message: reasons.join("; or ") || issue.message, unknown: [] };
}

function depthOf(finding: Finding): number {
  return finding.path.length + (finding.unknown.length > 0 ? 1 : 0);
}
