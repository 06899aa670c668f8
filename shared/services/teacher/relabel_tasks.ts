/** Stored turns as pairs of a context and what the teacher would have done after it. It changes nothing that is stored. */

import type { CanonicalAction } from "../../core/canonical_action.ts";
import { VerbatimError } from "../../core/errors.ts";
import type { Conversation } from "../../core/message.ts";
import type { Renderer } from "../../ports/renderer.ts";
import { packRows } from "../exports/export_rows.ts";
import type { TaskExporter } from "../exports/export_task.ts";
import type { TeacherLabeller } from "./label_turn.ts";
import type { ModelCatalog } from "../model_catalog.ts";
import { renderAction } from "./render_action.ts";
import { reasonAgainst, rolesOf, type StoredTasks, taskIdsOf } from "../tasks/stored_tasks.ts";
import type { TaskService } from "../tasks/task_service.ts";

/** Which turns, and where to go on. */
export interface RelabelRequest extends StoredTasks {
  /** Tools whose calls the teacher's answers are read for; turns do not keep theirs. */
  readonly tools: Conversation["tools"];
  readonly maxTokens: number | null;
  /** The pair that was had last: the run begins after it. */
  readonly after: { readonly taskId: string; readonly turn: number } | null;
}

/** One pair. Ids are the student's; `target_ids` in the student's format. */
export interface RelabelledTurn {
  readonly task_id: string;
  readonly turn: number;
  readonly context_ids: readonly number[];
  readonly action: CanonicalAction | null;
  readonly target_ids: readonly number[] | null;
  /** Why there is no action or no target. */
  readonly reason?: string;
}

/** The end of a run. */
export interface RelabelSummary {
  readonly done: true;
  readonly turns: number;
  readonly labelled: number;
}

/** What relabelling needs. */
export interface RelabelContext {
  readonly labeller: TeacherLabeller;
  readonly exporter: TaskExporter;
  readonly tasks: TaskService;
  readonly models: ModelCatalog;
  /** Turns labelled at once. */
  readonly concurrency: number;
}

interface Place {
  readonly taskId: string;
  readonly turn: number;
  readonly context: Uint32Array;
  readonly renderer: Renderer;
}

/** Pairs in the order of tasks and turns, some worked on ahead, then the summary. */
export async function* relabelTasks(
  context: RelabelContext,
  request: RelabelRequest,
  signal: AbortSignal,
): AsyncGenerator<RelabelledTurn | RelabelSummary> {
  const ahead: Promise<RelabelledTurn>[] = [];
  let turns = 0;
  let labelled = 0;
  const next = async (): Promise<RelabelledTurn> => {
    const line = await ahead.shift()!;
    turns++;
    if (line.action !== null) labelled++;
    return line;
  };
  for await (const place of places(context, request)) {
    signal.throwIfAborted();
    const work = labelAt(context, { ...request, place }, signal);
    // One that fails while nobody waits for it fails the run when its turn comes.
    work.catch(() => {});
    ahead.push(work);
    if (ahead.length >= context.concurrency) yield await next();
  }
  while (ahead.length > 0) yield await next();
  yield { done: true, turns, labelled };
}

/** The turns that are to be labelled, each once. */
async function* places(context: RelabelContext, request: RelabelRequest): AsyncGenerator<Place> {
  let skipping = request.after !== null;
  for await (const taskId of taskIdsOf(context.tasks, request.tasks)) {
    if (skipping && taskId !== request.after?.taskId) continue;
    const from = skipping ? request.after!.turn + 1 : 0;
    skipping = false;
    const { task } = await context.tasks.getReadable(taskId);
    if (reasonAgainst(task, request) !== null) continue;
    const { rows } = packRows(await context.exporter.judged(task), { roles: rolesOf(task, request) });
    const { renderer } = context.models.resolve(task.settings.model);
    const seen = new Map<number, Uint32Array>();
    for (const { path } of rows) {
      for (const { turn: { record }, start } of path.spans) {
        if (record.turn < from || seen.has(record.turn)) continue;
        const ids = new Uint32Array(path.prompt.length + start);
        ids.set(path.prompt);
        ids.set(path.response.subarray(0, start), path.prompt.length);
        seen.set(record.turn, ids);
      }
    }
    for (const turn of [...seen.keys()].sort((left, right) => left - right)) {
      yield { taskId, turn, context: seen.get(turn)!, renderer };
    }
  }
  if (!skipping) return;
  throw new VerbatimError("invalid_request", `Field "after": the run has no task "${request.after?.taskId}"`, {
    details: { field: "after", reason: "the run has no such task" },
  });
}

async function labelAt(
  { labeller }: RelabelContext,
  { place, tools, maxTokens }: RelabelRequest & { readonly place: Place },
  signal: AbortSignal,
): Promise<RelabelledTurn> {
  const { taskId: task_id, turn, context, renderer } = place;
  const { opensReasoning } = await renderer.renderPrompt(
    { messages: [{ role: "user", content: "?", source: 0 }], tools: [], settings: {} },
    { signal },
  );
  const label = await labeller.label({ ids: context, tools, opensReasoning }, { maxTokens }, signal);
  const line = { task_id, turn, context_ids: Array.from(context) };
  if (label.action === null) return { ...line, action: null, target_ids: null, reason: label.reason };
  try {
    const target = await renderAction(label.action, renderer, { signal });
    return { ...line, action: label.action, target_ids: Array.from(target) };
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof VerbatimError)) throw cause;
    return { ...line, action: label.action, target_ids: null, reason: cause.message };
  }
}
