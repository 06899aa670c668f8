/** Which stored tasks a run of the teacher is about, and which of their rows. It reads no turns. */

import type { TurnRole } from "../../core/judgement.ts";
import type { Outcome, TaskRecord } from "../../core/task.ts";
import type { TaskService } from "./task_service.ts";

/** Tasks and filters; filters come before anything is spent. */
export interface StoredTasks {
  readonly tasks: { readonly ids: readonly string[] } | { readonly groupId: string };
  readonly outcomes: readonly Outcome[] | null;
  /** Least reward; a task whose reward is no single number has none. */
  readonly minReward: number | null;
  /** Roles of rows; null for those that train in their task. */
  readonly roles: readonly TurnRole[] | null;
}

const ROLES: readonly TurnRole[] = ["main", "branch", "side", "superseded"];
const PAGE = 100;

/** The ids, each once: as given, or those of a group that are still there, in their order. */
export async function* taskIdsOf(service: TaskService, tasks: StoredTasks["tasks"]): AsyncGenerator<string> {
  if ("ids" in tasks) {
    yield* new Set(tasks.ids);
    return;
  }
  let cursor: string | undefined;
  do {
    const page = await service.list({
      groupId: tasks.groupId,
      limit: PAGE,
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const task of page.tasks) {
      const status = service.statusOf(task);
      if (status !== "dropped" && status !== "expired") yield task.taskId;
    }
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
}

/** Which filter leaves the task out, or null. */
export function reasonAgainst(task: TaskRecord, { outcomes, minReward }: StoredTasks): "outcome" | "reward" | null {
  if (outcomes !== null && (task.outcome === null || !outcomes.includes(task.outcome))) return "outcome";
  if (minReward === null) return null;
  return typeof task.reward === "number" && task.reward >= minReward ? null : "reward";
}

/** The roles of the rows that count. */
export function rolesOf(task: TaskRecord, { roles }: StoredTasks): readonly TurnRole[] {
  return roles ?? ROLES.filter((role) => task.settings.trainRoles.includes(role));
}
