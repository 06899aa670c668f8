/** What trainers read of a task. */

import type { TaskRecord } from "../core/task.ts";
import type { TurnRole } from "../core/judgement.ts";
import type { TaskStore } from "../ports/task_store.ts";
import { explainTask } from "./explain_task.ts";
import { exportRegion, type RegionExport } from "./export_region.ts";
import { exportRows } from "./export_rows.ts";
import { type JudgedTask, judgeTask } from "./judged_task.ts";
import type { ModelCatalog } from "./model_catalog.ts";
import type { TaskViews } from "./task_views.ts";

/** Which form of the result. */
export interface ResultRequest {
  readonly format: "region" | "rows";
  readonly roles?: readonly TurnRole[] | undefined;
  readonly maxVersionSpan?: number | undefined;
}

/** Exports tasks. */
export class TaskExporter {
  readonly #context: { readonly store: TaskStore; readonly views: TaskViews; readonly models: ModelCatalog };

  constructor(context: { readonly store: TaskStore; readonly views: TaskViews; readonly models: ModelCatalog }) {
    this.#context = context;
  }

  /** The task judged: its turns, and what each of them is. */
  judged(task: TaskRecord): Promise<JudgedTask> {
    return judgeTask(this.#context, task);
  }

  /** The main line as one region, or null with the reason. */
  async region(task: TaskRecord): Promise<RegionExport> {
    return exportRegion(await this.judged(task));
  }

  /** The result in the form asked for. */
  async result(task: TaskRecord, request: ResultRequest): Promise<Record<string, unknown>> {
    const judged = await this.judged(task);
    if (request.format === "region") return exportRegion(judged);
    return exportRows(judged, this.#context.models.resolve(task.settings.model).renderer.tokenizer, request);
  }

  /** The decisions on every answered request. */
  async explain(task: TaskRecord): Promise<Record<string, unknown>> {
    return explainTask(await this.judged(task));
  }
}
