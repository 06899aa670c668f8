/** The only place that reads environment variables. */

import { z } from "zod";
import { VerbatimError } from "../core/errors.ts";
import { Environment } from "../schemas/environment.ts";

/** Other names under which a variable is looked for, where its own is not set. */
const ALIASES: Partial<Record<keyof Environment, string>> = {
  DATABASE_URL: "SUPABASE_DB_URL",
  BLOB_S3_REGION: "AWS_REGION",
  BLOB_S3_ACCESS_KEY_ID: "AWS_ACCESS_KEY_ID",
  BLOB_S3_SECRET_ACCESS_KEY: "AWS_SECRET_ACCESS_KEY",
  DISTILL_TOPK: "STACX_DISTILL_TOPK",
  DISTILL_TEACHER_CONCURRENCY: "STACX_DISTILL_TEACHER_CONCURRENCY",
  DISTILL_TEACHER_RETRIES: "STACX_DISTILL_TEACHER_RETRIES",
  DISTILL_TEACHER_BASE_DELAY: "STACX_DISTILL_TEACHER_BASE_DELAY",
};

/** Variables of {@linkcode Environment} that are set. An empty variable counts as unset. */
export function givenVariables(
  get: (name: string) => string | undefined = (name) => Deno.env.get(name),
): Partial<Record<keyof Environment, string>> {
  const given: Partial<Record<keyof Environment, string>> = {};
  for (const name of Environment.keyof().options) {
    const alias = ALIASES[name];
    const value = get(name) || (alias === undefined ? undefined : get(alias));
    if (value !== undefined && value !== "") given[name] = value;
  }
  return given;
}

/**
 * The environment, checked. A bad value throws `not_ready` naming each variable and what it wants; values are not
 * repeated, since some are secrets.
 */
export function readEnvironment(
  given: Partial<Record<keyof Environment, string>> = givenVariables(),
): Environment {
  const parsed = Environment.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${String(issue.path[0])}: ${issue.message}`);
  throw new VerbatimError("not_ready", `Cannot start with this environment: ${problems.join("; ")}`, {
    details: { problems: z.flattenError(parsed.error).fieldErrors },
  });
}
