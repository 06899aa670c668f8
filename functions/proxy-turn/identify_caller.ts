/** Whose key is this? A task's, one that is served without a task, or nobody's. */

import { createHash } from "node:crypto";
import { VerbatimError } from "../../shared/core/errors.ts";
import { equalKeys, hashKey } from "../../shared/core/hash_key.ts";
import type { VersionedTask } from "../../shared/ports/task_store.ts";
import { CreateTask } from "../../shared/schemas/tasks.ts";
import { taskSettings } from "../../shared/services/tasks/task_settings.ts";
import { TASK_KEY_PREFIX } from "../../shared/services/tasks/task_keys.ts";
import type { HandlerServices } from "../handler_services.ts";

/** A caller with a right to call. */
export type Caller =
  | { readonly kind: "task"; readonly read: VersionedTask }
  /** The same renderer and parser, nothing recorded. */
  | { readonly kind: "pass_through"; readonly keyHash: string };

/** The caller behind a key. Unknown, dropped and expired keys are `unauthorized`; a closed task's key is `task_closed`. */
export async function identifyCaller(key: string | null, services: HandlerServices): Promise<Caller> {
  if (key === null) {
    throw new VerbatimError("unauthorized", "The key is missing: send Authorization: Bearer KEY or x-api-key: KEY");
  }
  const read = await services.tasks.ofKey(hashKey(key)) ?? await autoCreated(key, services);
  if (read !== null) {
    if (read.task.status !== "open") {
      throw new VerbatimError("task_closed", `The task is ${read.task.status}: no further calls are taken`, {
        details: { status: read.task.status },
      });
    }
    return { kind: "task", read };
  }
  if (services.passThroughKeys.some((candidate) => equalKeys(candidate, key))) {
    return { kind: "pass_through", keyHash: hashKey(key) };
  }
  throw new VerbatimError("unauthorized", "The key opens no task here");
}

/** In development an unknown key opens a task of its own, named after the key's hash. */
async function autoCreated(key: string, services: HandlerServices): Promise<VersionedTask | null> {
  if (!services.autoCreateTasks || services.passThroughKeys.some((candidate) => equalKeys(candidate, key))) return null;
  // Looks like a key of ours with a typing error, or of a task that is gone: a new task would hide that.
  if (key.startsWith(TASK_KEY_PREFIX)) return null;
  const taskId = `auto-${createHash("sha256").update(key).digest("hex").slice(0, 12)}`;
  try {
    await services.tasks.create({
      taskId,
      settings: taskSettings(CreateTask.parse({})),
      ttlMs: null,
      idempotencyKey: null,
      agentKey: key,
    });
  } catch (thrown) {
    // Two first calls at once: the other one made it. A dropped task of this key is not made again.
    if (!(thrown instanceof VerbatimError && thrown.code === "task_exists")) throw thrown;
  }
  return await services.tasks.ofKey(hashKey(key));
}
