/** Scores what is stored: the rows of tasks, each turn once, kept beside their tokens. It does not score by itself. */

import { VerbatimError } from "../../core/errors.ts";
import type { PackedPath, TurnSpan } from "../../core/packed_path.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { TurnScores } from "../../core/turn_scores.ts";
import type { TaskStore } from "../../ports/task_store.ts";
import type { TeacherScores } from "../../ports/teacher.ts";
import { packRows } from "../exports/export_rows.ts";
import type { TaskExporter } from "../exports/export_task.ts";
import type { TeacherScorer } from "./score_with_teacher.ts";
import { reasonAgainst, rolesOf, type StoredTasks, taskIdsOf } from "../tasks/stored_tasks.ts";
import type { TaskService } from "../tasks/task_service.ts";

/** Which tasks, and what of them. Filters come before anything is spent. */
export interface ScoreTasksRequest extends StoredTasks {
  /** K; null for the configured one. */
  readonly topK: number | null;
}

/** What became of one task. */
export interface TaskProgress {
  readonly task_id: string;
  readonly status: "scored" | "skipped" | "failed";
  /** Turns and tokens scored now, and turns that were scored before. */
  readonly turns: number;
  readonly tokens: number;
  readonly already: number;
  /** Why nothing of it is scored. */
  readonly reason?: string;
  readonly error?: { readonly code: string; readonly message: string; readonly details?: Record<string, unknown> };
}

/** The end of a run. `done` is false where the teacher gave out: what is missing is scored by the same request again. */
export interface RunSummary {
  readonly done: boolean;
  readonly tasks: number;
  readonly scored: number;
  readonly skipped: number;
  readonly failed: number;
  readonly turns: number;
  readonly tokens: number;
  readonly teacher: TeacherScorer["identity"];
}

/** What scoring tasks needs. */
export interface TaskScorerContext {
  readonly scorer: TeacherScorer;
  readonly exporter: TaskExporter;
  readonly tasks: TaskService;
  readonly store: TaskStore;
}

/** Scores tasks. One process scores a task once at a time, so that no turn is paid for twice. */
export class TaskScorer {
  readonly #context: TaskScorerContext;
  /** The last work on each task that is under way. */
  readonly #busy = new Map<string, Promise<unknown>>();

  constructor(context: TaskScorerContext) {
    this.#context = context;
  }

  /** A line for each task as it ends, then the summary. A teacher that fails for all ends the run early, and says so. */
  async *run(request: ScoreTasksRequest, signal: AbortSignal): AsyncGenerator<TaskProgress | RunSummary> {
    const { scorer } = this.#context;
    const stop = new AbortController();
    const both = AbortSignal.any([signal, stop.signal]);
    const running = new Set<Promise<TaskProgress>>();
    const totals = { tasks: 0, scored: 0, skipped: 0, failed: 0, turns: 0, tokens: 0 };
    let gaveOut = false;
    const next = async (): Promise<TaskProgress> => {
      const { line, work } = await Promise.race(
        [...running].map(async (work) => ({ line: await work, work })),
      );
      running.delete(work);
      totals.tasks++;
      totals[line.status]++;
      totals.turns += line.turns;
      totals.tokens += line.tokens;
      // Its retries are used up: every further task would wait for as long and fail.
      if (line.error?.code === "teacher_failed") gaveOut = true;
      return line;
    };
    try {
      for await (const taskId of taskIdsOf(this.#context.tasks, request.tasks)) {
        signal.throwIfAborted();
        const work = this.#lineOf(taskId, request, both);
        // One that fails while nobody waits for it fails the run when its turn comes.
        work.catch(() => {});
        running.add(work);
        if (running.size >= scorer.options.concurrency) yield await next();
        if (gaveOut) break;
      }
      while (running.size > 0) yield await next();
      signal.throwIfAborted();
      yield { done: !gaveOut, ...totals, teacher: scorer.identity };
    } finally {
      stop.abort(new VerbatimError("client_gone", "The scoring run was left"));
    }
  }

  /** Scores one committed turn, unless it is scored already, or superseded meanwhile. */
  async scoreTurn(given: TaskRecord, turn: number, signal: AbortSignal): Promise<void> {
    await this.#alone(given, async () => {
      const { exporter, scorer, tasks } = this.#context;
      // It may have waited for the turns before it: the task as it is now says whether the turn still counts.
      const { task } = await tasks.getReadable(given.taskId);
      if (task.uid !== given.uid) return;
      const known = await this.#known(task, scorer.options.defaultTopK);
      if (known.has(turn)) return;
      const judged = await exporter.judged(task);
      if (judged.judgement.turns[turn]?.superseded === true) return;
      const path = exporter.pathTo(judged, turn);
      const own = sampledSpans(path).at(-1);
      if (own?.turn.record.turn === turn) {
        await this.#scoreSpans(task, { path, spans: [own], topK: scorer.options.defaultTopK }, signal);
      }
    });
  }

  async #lineOf(taskId: string, request: ScoreTasksRequest, signal: AbortSignal): Promise<TaskProgress> {
    const nothing = { task_id: taskId, turns: 0, tokens: 0, already: 0 };
    try {
      const { task } = await this.#context.tasks.getReadable(taskId);
      return await this.#alone(task, () => this.#scoreTask(task, request, signal));
    } catch (cause) {
      if (!(cause instanceof VerbatimError)) throw cause;
      const { code, message, details } = cause;
      return { ...nothing, status: "failed", error: { code, message, ...(details === undefined ? {} : { details }) } };
    }
  }

  async #scoreTask(task: TaskRecord, request: ScoreTasksRequest, signal: AbortSignal): Promise<TaskProgress> {
    const line = { task_id: task.taskId, turns: 0, tokens: 0, already: 0 };
    const refusal = reasonAgainst(task, request);
    if (refusal !== null) return { ...line, status: "skipped", reason: refusal };
    const roles = rolesOf(task, request);
    const { rows, reason } = packRows(await this.#context.exporter.judged(task), { roles });
    if (rows.length === 0) return { ...line, status: "skipped", reason: reason ?? "no row has the roles asked for" };
    const topK = Math.min(
      request.topK ?? this.#context.scorer.options.defaultTopK,
      this.#context.scorer.options.vocabSize,
    );
    const known = await this.#known(task, topK);
    const wanted = new Set(rows.flatMap(({ path }) => sampledSpans(path).map(({ turn }) => turn.record.turn)));
    line.already = [...wanted].filter((turn) => known.has(turn)).length;
    for (const { path } of rows) {
      const spans = sampledSpans(path).filter(({ turn }) => !known.has(turn.record.turn));
      if (spans.length === 0) continue;
      await this.#scoreSpans(task, { path, spans, topK }, signal);
      for (const { turn, start, end } of spans) {
        known.add(turn.record.turn);
        line.turns++;
        line.tokens += end - start;
      }
    }
    return { ...line, status: "scored" };
  }

  /** Turns that this teacher has scored with this K. */
  async #known(task: TaskRecord, topK: number): Promise<Set<number>> {
    const kept = await this.#context.store.readScores(task, this.#context.scorer.name);
    return new Set(kept.filter((scores) => scores.topK === topK).map(({ turn }) => turn));
  }

  /** One call for all these spans of a path: what comes before the first is the prompt, and the last ends it. */
  async #scoreSpans(
    task: TaskRecord,
    part: { readonly path: PackedPath; readonly spans: readonly TurnSpan[]; readonly topK: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { path, spans, topK } = part;
    const from = spans[0]!.start;
    const to = spans.at(-1)!.end;
    const mask = new Uint8Array(to - from);
    for (const { start, end } of spans) mask.fill(1, start - from, end - from);
    const prompt = new Uint32Array(path.prompt.length + from);
    prompt.set(path.prompt);
    prompt.set(path.response.subarray(0, from), path.prompt.length);
    const { scorer, store } = this.#context;
    const scores = await scorer.score(
      { prompt, response: path.response.slice(from, to), topK, tokenIds: new Uint32Array(0), mask },
      signal,
    );
    if (!await store.saveScores(task, { teacher: scorer.name, scores: scoresByTurn(scores, spans, { topK }) })) {
      throw new VerbatimError("task_not_found", `Task "${task.taskId}" was dropped while it was scored`);
    }
  }

  /** Waits for work on the task that is under way. */
  async #alone<T>(task: TaskRecord, work: () => Promise<T>): Promise<T> {
    const before = this.#busy.get(task.uid);
    const mine = (before ?? Promise.resolve()).then(work, work);
    this.#busy.set(task.uid, mine);
    try {
      return await mine;
    } finally {
      if (this.#busy.get(task.uid) === mine) this.#busy.delete(task.uid);
    }
  }
}

/** What the policy sampled, a token at least. */
function sampledSpans(path: PackedPath): TurnSpan[] {
  return path.spans.filter(({ turn, start, end }) => turn.record.actor === "policy" && start < end);
}

function scoresByTurn(scores: TeacherScores, spans: readonly TurnSpan[], { topK }: { topK: number }): TurnScores[] {
  let at = 0;
  return spans.map(({ turn, start, end }) => {
    const from = at;
    at += end - start;
    return {
      turn: turn.record.turn,
      topK,
      logprobs: scores.logprobs.subarray(from, at),
      topkIndices: scores.topkIndices.subarray(from * topK, at * topK),
      topkLogprobs: scores.topkLogprobs.subarray(from * topK, at * topK),
    };
  });
}
