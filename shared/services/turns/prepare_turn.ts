/** A call made ready to be sampled: placed, rendered, and its limits settled. Nothing is sent and nothing is consumed here. */

import { VerbatimError } from "../../core/errors.ts";
import { keepInput } from "../../core/kept_input.ts";
import type { Located } from "../../core/locate.ts";
import { isTeachersTurn, turnPosition } from "../../core/rollin.ts";
import { withTokenLimit } from "../../core/sampling.ts";
import type { TaskRecord } from "../../core/task.ts";
import type { Ids } from "../../ports/ids.ts";
import type { ExtrasCapture } from "../extras/capture_extras.ts";
import { assertTurnLeft, tokensInBudget } from "../tasks/task_budget.ts";
import type { TeacherLabeller } from "../teacher/label_turn.ts";
import type { CallsInFlight } from "./calls_in_flight.ts";
import { checkSamplingIds } from "./check_sampling_ids.ts";
import { tokensLeft } from "./context_length.ts";
import { placePrompt } from "./place_prompt.ts";
import type { PreparedTurn } from "./run_turn.ts";
import type { RunningCall } from "./running_call.ts";
import type { TaskView } from "./task_views.ts";

/** What it needs. */
export interface PrepareContext {
  readonly ids: Ids;
  readonly inFlight: CallsInFlight;
  readonly extras: ExtrasCapture;
  /** Acts where a task's roll-in says so; null without a teacher. */
  readonly labeller: TeacherLabeller | null;
}

/** Where a call is recorded: no task, or no view of it, where it is not. */
export interface PrepareFor {
  readonly task: TaskRecord | null;
  readonly view: TaskView | null;
}

/** Prepares a turn. Budgets and lengths that are used up, and what the template refuses, are thrown here. */
export async function prepareTurn(
  context: PrepareContext,
  running: RunningCall,
  { task, view }: PrepareFor,
): Promise<PreparedTurn> {
  const { ids, inFlight } = context;
  const { agent, call, effective } = running;
  const { conversation, model: { renderer, maxContextTokens } } = agent;
  checkSamplingIds(effective.sampling, renderer.tokenizer.vocabSize, "");
  const known = latestKnown(task, view);
  if (known !== null) assertTurnLeft(known, Math.max(0, inFlight.count(known.uid) - 1));
  const recorded = task === null || view === null ? null : { task, view };
  const request = { conversation, units: running.units, known: agent.nearest?.prompt ?? null, renderer, recorded };
  const { located, parent, rewriteOf, rendered, prompt } = await placePrompt(request, call.signal);
  const left = tokensLeft({
    promptTokens: prompt.length,
    maxContextTokens: Math.min(maxContextTokens, task?.settings.maxContextTokens ?? Infinity),
    wished: effective.sampling.max_new_tokens ?? null,
  });
  const inBudget = known === null ? null : tokensInBudget(known, prompt.length);
  return {
    agent,
    task,
    parent,
    rewriteOf,
    place: located,
    observation: rendered.ids,
    prompt,
    opensReasoning: rendered.opensReasoning,
    sampling: withTokenLimit(effective.sampling, Math.min(left, inBudget ?? Infinity)),
    ignoredFields: [...new Set([...agent.ignoredFields, ...effective.ignored])],
    input: agent.keepsInput && view !== null ? keepInput(conversation.messages, view.turns, parent) : null,
    digest: running.digest,
    rid: ids.uuid(),
    answerId: ids.hex(24),
    teacher: teacherOf(context, recorded, located),
    extras: recorded === null
      ? null
      : await context.extras.plan(recorded.task, { model: agent.model, turns: recorded.view.turns, parent }),
  };
}

/** Who acts in the policy's place at this point of the history, or null. */
function teacherOf(
  { labeller }: PrepareContext,
  recorded: { readonly task: TaskRecord; readonly view: TaskView } | null,
  located: Located | null,
): TeacherLabeller | null {
  const rollin = recorded?.task.settings.rollin;
  if (recorded === null || rollin === undefined) return null;
  if (!isTeachersTurn(rollin, turnPosition(recorded.view.forest, located?.related ?? null))) return null;
  if (labeller !== null) return labeller;
  throw new VerbatimError("teacher_failed", "The turn is the teacher's, and this process has none configured", {
    retryable: false,
  });
}

/** The record as it is known now: turns may have been committed since the request's key was looked up. */
function latestKnown(task: TaskRecord | null, view: TaskView | null): TaskRecord | null {
  const head = view?.head?.task;
  return task !== null && head !== undefined && head.turns > task.turns ? head : task;
}
