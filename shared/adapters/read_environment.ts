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
  const parsed = Environment.safeParse(withFiles(given));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`);
  throw new VerbatimError("not_ready", `Cannot start with this environment: ${problems.join("; ")}`, {
    details: { problems: z.flattenError(parsed.error).fieldErrors },
  });
}

/** The value of a variable that another one names, which must be set. */
export function readNamedVariable(
  name: string,
  namedBy: keyof Environment,
  get: (name: string) => string | undefined = (variable) => Deno.env.get(variable),
): string {
  const value = get(name);
  if (value !== undefined && value !== "") return value;
  throw new VerbatimError("not_ready", `Cannot start: ${namedBy} names the variable ${name}, which is not set`);
}

/** A list too long for a variable may stand in a file, which the variable then names. */
function withFiles(
  given: Partial<Record<keyof Environment, string>>,
): Partial<Record<keyof Environment, string>> {
  const { OPENAI_BACKENDS: place } = given;
  if (place === undefined || place.trim().startsWith("[")) return given;
  try {
    return { ...given, OPENAI_BACKENDS: Deno.readTextFileSync(place) };
  } catch {
    throw new VerbatimError("not_ready", "Cannot start: OPENAI_BACKENDS is no JSON list, nor a file that can be read");
  }
}
