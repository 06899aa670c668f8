/** Who may call what: the admin key opens Verbatim's own endpoints, a task key the dialect endpoints of its task. */

import type { Context, MiddlewareHandler } from "hono";
import { VerbatimError } from "../core/errors.ts";
import { equalKeys, hashKey } from "../core/hash_key.ts";

/** Where a key was found in a request, or null: `Authorization: Bearer`, `x-api-key`, or the path `/k/KEY/...`. */
export function keyOf(context: Context): string | null {
  const inPath = context.req.param("key");
  if (inPath !== undefined && inPath !== "") return inPath;
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(context.req.header("authorization") ?? "");
  return bearer?.[1] ?? context.req.header("x-api-key") ?? null;
}

/** Whether a key belongs to a task. */
export type IsTaskKey = (keyHash: string) => Promise<boolean>;

/**
 * Lets the admin pass. Without an admin key everyone is admin: the server then listens on loopback only.
 * A missing or wrong key is `unauthorized`, a task's key `forbidden`.
 */
export function requireAdmin(options: { adminKey: string | undefined; isTaskKey: IsTaskKey }): MiddlewareHandler {
  return async function requireAdmin(context, next) {
    if (options.adminKey !== undefined) {
      const key = keyOf(context);
      if (key === null) {
        throw new VerbatimError("unauthorized", "The admin key is missing: send Authorization: Bearer KEY");
      }
      if (!equalKeys(key, options.adminKey)) {
        if (await options.isTaskKey(hashKey(key))) {
          throw new VerbatimError("forbidden", "A task key opens only the dialect endpoints of its task");
        }
        throw new VerbatimError("unauthorized", "The admin key is wrong");
      }
    } else {
      // No admin key is set. A task key is still an agent's, and an agent has no business here.
      const key = keyOf(context);
      if (key !== null && await options.isTaskKey(hashKey(key))) {
        throw new VerbatimError("forbidden", "A task key opens only the dialect endpoints of its task");
      }
    }
    await next();
  };
}
