/** Checks a value with a schema and says what is wrong in Verbatim's words. */

import type { z } from "zod";
import { VerbatimError } from "../core/errors.ts";

/** The schema's output. `where` names the place (`body`, `query`) for messages about the whole value. */
export function parseWith<T extends z.ZodType>(schema: T, value: unknown, where: string): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = deepest(parsed.error.issues);
  const path = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const field = [...issue.path.map(String), issue.keys[0]].join(".");
    throw new VerbatimError("unknown_field", `Unknown field "${field}" in the ${where}`, {
      details: { field, fields: issue.keys },
    });
  }
  const field = path === "" ? null : path;
  throw new VerbatimError(
    "invalid_request",
    `${field === null ? `The ${where}` : `Field "${field}"`}: ${issue.message}`,
    {
      details: { field, reason: issue.message },
    },
  );
}

/** Of a union's issues, the one that got furthest says most. */
function deepest(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue {
  let best: z.core.$ZodIssue = issues[0]!;
  for (const issue of issues) {
    if (issue.code !== "invalid_union") continue;
    for (const branch of issue.errors) {
      for (const inner of branch) {
        if (inner.path.length > 0) best = { ...inner, path: [...issue.path, ...inner.path] };
      }
    }
  }
  return best;
}
