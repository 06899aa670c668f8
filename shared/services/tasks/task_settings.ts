/** A task's settings from a checked creation request. What is not supported is refused, so that no setting is silently without effect. */

import { VerbatimError } from "../../core/errors.ts";
import type { Rollin } from "../../core/rollin.ts";
import { EXTRA_NAMES, type ExtraName } from "../../core/turn_extras.ts";
import type { MainSelector } from "../../core/task.ts";
import type { NewTaskSettings } from "./task_service.ts";
import type { CreateTask } from "../../schemas/tasks.ts";

/** The settings; `routingKey` is null where the task id is to be used. */
export function taskSettings(request: CreateTask): NewTaskSettings {
  refuseUnsupported(request);
  const extras = captureExtras(request);
  return {
    groupId: request.group_id ?? null,
    rolloutId: request.rollout_id ?? null,
    parentTaskId: request.parent_task_id ?? null,
    routingKey: request.routing_key ?? null,
    model: request.model ?? null,
    metadata: request.metadata,
    capture: request.capture,
    history: request.history,
    echo: request.echo ?? (request.history === "append_only" ? "lenient" : "strict"),
    onRepeat: request.on_repeat,
    reasoningHistory: request.reasoning_history,
    main: mainSelector(request.main),
    fixedSampling: request.sampling?.fixed ?? {},
    agentMaySet: request.sampling?.agent_may_set ?? [],
    trainRoles: request.train_roles,
    onAbort: request.on_abort,
    maxVersionSpan: request.max_version_span ?? null,
    maxTurns: request.max_turns ?? null,
    maxTotalTokens: request.max_total_tokens ?? null,
    maxContextTokens: request.max_context_tokens ?? null,
    ...(request.score === "off" ? {} : { score: request.score }),
    ...(extras.length === 0 ? {} : { captureExtras: extras }),
    ...(request.rollin === undefined ? {} : { rollin: rollin(request.rollin) }),
  };
}

function mainSelector(main: CreateTask["main"]): MainSelector | null {
  if (main === undefined) return null;
  return {
    ...(main.header === undefined ? {} : { header: main.header }),
    ...(main.tools_include === undefined ? {} : { toolsInclude: main.tools_include }),
    ...(main.system_includes === undefined ? {} : { systemIncludes: main.system_includes }),
  };
}

function rollin({ beta, prefix_turns, seed }: NonNullable<CreateTask["rollin"]>): Rollin {
  if (prefix_turns !== undefined) return { kind: "prefix", turns: prefix_turns };
  if (beta !== undefined && seed !== undefined) return { kind: "mixture", beta, seed };
  throw new Error("The schema lets no other roll-in through");
}

/** The extras asked for, each once. Whether the engine says them is found out elsewhere. */
function captureExtras({ capture_extras: asked, capture, sampling }: CreateTask): ExtraName[] {
  const unknown = asked.find((name) => !EXTRA_NAMES.some((known) => known === name));
  if (unknown !== undefined) {
    throw unsupported("capture_extras", `there is no extra ${JSON.stringify(unknown)}, only ${EXTRA_NAMES.join(", ")}`);
  }
  if (asked.length > 0 && !capture) throw unsupported("capture_extras", "without capture there are no turns");
  const topP = sampling?.fixed?.top_p ?? 1;
  if (asked.includes("top_p_ids") && topP >= 1) {
    throw unsupported("capture_extras", "top_p_ids: nothing is cut off unless sampling.fixed.top_p is below 1");
  }
  return EXTRA_NAMES.filter((name) => asked.includes(name));
}

function refuseUnsupported(request: CreateTask): void {
  if (request.score !== "off" && !request.capture) throw unsupported("score", "without capture there are no turns");
  if (request.rollin !== undefined && !request.capture) {
    throw unsupported("rollin", "without capture nobody knows whose turn it is");
  }
  if (!request.capture) {
    for (const budget of ["max_turns", "max_total_tokens"] as const) {
      if (request[budget] !== undefined) throw unsupported(budget, "nothing is counted without capture");
    }
  }
}

function unsupported(field: string, reason: string): VerbatimError {
  return new VerbatimError("unsupported", `Field "${field}": ${reason}`, { details: { field, reason } });
}
