/** The body of an agent's request. The next one of a task repeats most of one before: only what is new is parsed. */

import type { Context } from "hono";
import type { KnownJson } from "../../shared/core/growing_json.ts";
import { readGrowingJson } from "../../shared/http/read_body.ts";
import type { KeptRequest } from "../../shared/services/turns/kept_requests.ts";
import type { HandlerServices } from "../handler_services.ts";
import type { Caller } from "./identify_caller.ts";

/** A body as parsed. */
export interface AgentBody {
  readonly json: unknown;
  /** What to keep of it for the next one. */
  readonly body: KnownJson | null;
  /** The request of the task that it repeats most of, or null. */
  readonly nearest: KeptRequest | null;
}

/** Where the dialects have their conversation. */
const LISTS = ["messages", "input"] as const;

/** Reads the body. Errors as `readJson` has them. */
export async function readAgentBody(context: Context, services: HandlerServices, caller: Caller): Promise<AgentBody> {
  const task = caller.kind === "task" && caller.read.task.settings.capture ? caller.read.task : null;
  let nearest: KeptRequest | null = null;
  const { value: json, known: body } = await readGrowingJson(context, {
    maxBytes: services.maxBytes,
    fields: LISTS,
    known(bytes) {
      nearest = task === null ? null : services.recorder.nearestRequest(task, bytes);
      return nearest?.body ?? null;
    },
  });
  return { json, body: task === null ? null : body, nearest };
}
