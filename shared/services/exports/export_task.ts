/** What trainers read of a task. */

import type { TaskRecord } from "../../core/task.ts";
import { type PackedPath, packPath } from "../../core/packed_path.ts";
import type { TurnRole } from "../../core/judgement.ts";
import type { ExtraName } from "../../core/turn_extras.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import { explainTask } from "./explain_task.ts";
import { exportRegion, type RegionExport } from "./export_region.ts";
import { exportRows } from "./export_rows.ts";
import { exportSlime } from "./export_slime.ts";
import { type JudgedTask, judgeTask } from "./judged_task.ts";
import { findScores, type FoundScores } from "../teacher/kept_scores.ts";
import type { KeptBlobs } from "../extras/kept_blobs.ts";
import type { ModelCatalog } from "../model_catalog.ts";
import { findExtras } from "../extras/path_extras.ts";
import type { TaskViews } from "../turns/task_views.ts";

/** Which form of the result. */
export interface ResultRequest {
  readonly format: "region" | "rows" | "slime";
  readonly roles?: readonly TurnRole[] | undefined;
  readonly maxVersionSpan?: number | undefined;
  /** Of what the task captures beside tokens; all where absent. */
  readonly extras?: readonly ExtraName[] | undefined;
  /** As in the slime form, which alone has it. */
  readonly ceSentinel?: boolean | undefined;
}

/** What exporting needs. */
export interface ExportContext {
  readonly store: TaskStore;
  readonly views: TaskViews;
  readonly models: ModelCatalog;
  readonly blobs: KeptBlobs;
  /** Whose scores exports carry first; null where no teacher is configured. */
  readonly teacher?: string | null;
}

/** Exports tasks. */
export class TaskExporter {
  readonly #context: ExportContext;

  constructor(context: ExportContext) {
    this.#context = context;
  }

  /** The task judged: its turns, and what each of them is. */
  judged(task: TaskRecord): Promise<JudgedTask> {
    return judgeTask(this.#context, task);
  }

  /** The path to a turn. Turns that do not fit together are `internal`. */
  pathTo(judged: JudgedTask, turn: number): PackedPath {
    return packPath(judged.forest.path(turn).map((at) => judged.turns[at]!));
  }

  /** The main line as one region, or null with the reason. */
  async region(task: TaskRecord, names?: readonly ExtraName[]): Promise<RegionExport> {
    const [judged, scores] = await Promise.all([this.judged(task), this.#scores(task)]);
    const last = judged.judgement.mainLine.at(-1);
    const path = last === undefined ? [] : judged.forest.path(last);
    const turns = path.map((turn) => judged.turns[turn]!);
    return exportRegion(judged, { scores, extras: await findExtras(this.#context.blobs, task, { turns, names }) });
  }

  /** The result in the form asked for. */
  async result(task: TaskRecord, request: ResultRequest): Promise<Record<string, unknown>> {
    if (request.format === "region") return await this.region(task, request.extras);
    const [judged, scores] = await Promise.all([this.judged(task), this.#scores(task)]);
    const wanted = { turns: judged.turns, names: request.extras };
    const extras = await findExtras(this.#context.blobs, task, wanted);
    // A task without capture has no turns to decode, and its model may have no tokenizer.
    const { model, capture } = task.settings;
    const { tokenizer } = this.#context.models.resolve(capture ? model : null).renderer;
    const exported = request.format === "rows" ? exportRows : exportSlime;
    return exported(judged, request, { tokenizer, scores, extras });
  }

  #scores(task: TaskRecord): Promise<FoundScores> {
    return findScores(this.#context.store, task, this.#context.teacher ?? null);
  }

  /** The decisions on every answered request. */
  async explain(task: TaskRecord): Promise<Record<string, unknown>> {
    return explainTask(await this.judged(task));
  }
}
