/** A task with its turns read and its history judged. */

import { Forest } from "../core/forest.ts";
import type { Judgement } from "../core/judgement.ts";
import type { TaskRecord } from "../core/task.ts";
import type { Turn } from "../core/turn.ts";
import { judge } from "../core/verdict.ts";
import type { TaskStore } from "../ports/task_store.ts";
import { deliveries } from "./deliveries.ts";
import type { TaskViews } from "./task_views.ts";

/** What is known of a task. */
export interface JudgedTask {
  readonly task: TaskRecord;
  /** By number. */
  readonly turns: readonly Turn[];
  readonly forest: Forest;
  readonly judgement: Judgement;
  /** Whether each turn's answer went out whole; absent where nothing says so yet. */
  readonly delivered: ReadonlyMap<number, boolean>;
}

/** Reads a task's turns and events and judges them. Verdicts are final once the task is finished. */
export async function judgeTask(
  context: { readonly store: TaskStore; readonly views: TaskViews },
  task: TaskRecord,
): Promise<JudgedTask> {
  const [view, events] = await Promise.all([context.views.of(task), context.store.listEvents(task.uid)]);
  const turns = view.turns.slice(0, task.turns);
  const forest = new Forest();
  const replays = events.filter((event) =>
    event.type === "replayed" && event.turn !== null && event.turn < turns.length
  );
  let next = 0;
  for (const turn of turns) {
    const committedAtMs = turn.record.startedAtMs + turn.record.durationMs;
    while (next < replays.length && replays[next]!.atMs < committedAtMs && replays[next]!.turn! < turn.record.turn) {
      forest.addReplay(replays[next++]!.turn!);
    }
    forest.add(turn.record.turn, turn.record.parent, turn.detail.history);
  }
  for (const replay of replays.slice(next)) forest.addReplay(replay.turn!);
  const { history, echo, main } = task.settings;
  const judgement = judge(forest, { history, echo, final: task.status === "finished", hasSelector: main !== null });
  return { task, turns, forest, judgement, delivered: deliveries(events) };
}
