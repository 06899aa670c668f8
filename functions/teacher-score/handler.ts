/** The teacher's endpoints. Thin: shapes in, services, shapes out. */

import { type Context, Hono } from "hono";
import type { CanonicalAction } from "../../shared/core/canonical_action.ts";
import { checkedIds } from "../../shared/core/checked_ids.ts";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { Conversation } from "../../shared/core/message.ts";
import { safetensors } from "../../shared/core/safetensors.ts";
import { watchClient } from "../../shared/http/client_signal.ts";
import { errorBody, logFailure, toVerbatimError } from "../../shared/http/error_response.ts";
import { linesResponse } from "../../shared/http/lines_response.ts";
import { partsBody, tensorsResponse, wantsTensors } from "../../shared/http/parts_body.ts";
import { readBody } from "../../shared/http/read_body.ts";
import type { Renderer } from "../../shared/ports/renderer.ts";
import { LabelBody, RelabelBody, ScoreTasksBody, TeacherScoreBody } from "../../shared/schemas/teacher_score.ts";
import { relabelTasks } from "../../shared/services/teacher/relabel_tasks.ts";
import { renderAction } from "../../shared/services/teacher/render_action.ts";
import { scoreJson, scoreResponse, scoreTensors } from "../../shared/services/teacher/score_response.ts";
import type { StoredTasks } from "../../shared/services/tasks/stored_tasks.ts";
import type { HandlerServices } from "../handler_services.ts";
import { readChatConversation } from "../proxy-turn/chat_messages.ts";
import { readTools } from "../proxy-turn/read_tools.ts";

/** The teacher endpoints, to be mounted at their slug. */
export function createTeacherScoreApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/", (context) => score(context, services));
  app.post("/tasks", (context) => scoreTasks(context, services));
  app.post("/relabel", (context) => relabel(context, services));
  app.post("/label", (context) => label(context, services));
  return app;
}

async function score(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, TeacherScoreBody, services);
  const scored = await scoreResponse(request, configured(services.teacher), watchClient(context).signal);
  if (wantsTensors(context.req.header("accept"))) {
    return tensorsResponse(safetensors(scoreTensors(scored), { verbatim: JSON.stringify(scored.rest) }));
  }
  return new Response(partsBody(scoreJson(scored)), { headers: { "content-type": "application/json" } });
}

/** One line of JSON for each task, then the summary; an error ends them in a line of its own. */
async function scoreTasks(context: Context, services: HandlerServices): Promise<Response> {
  const body = await readBody(context, ScoreTasksBody, services);
  const scorer = configured(services.taskScorer);
  const { signal } = watchClient(context);
  return lines(context, services, scorer.run({ ...storedTasks(body), topK: body.top_k ?? null }, signal));
}

/** One line of JSON for each stored turn, then the summary; an error ends them in a line of its own. */
async function relabel(context: Context, services: HandlerServices): Promise<Response> {
  const body = await readBody(context, RelabelBody, services);
  const labeller = configured(services.labeller);
  const { concurrency } = configured(services.teacher).options;
  const { signal } = watchClient(context);
  const request = {
    ...storedTasks(body),
    tools: readTools(body.tools),
    maxTokens: body.max_tokens ?? null,
    after: body.after === undefined ? null : { taskId: body.after.task_id, turn: body.after.turn },
  };
  return lines(context, services, relabelTasks({ ...services, labeller, concurrency }, request, signal));
}

function storedTasks(body: Pick<ScoreTasksBody, "task_ids" | "group_id" | "only">): StoredTasks {
  const { task_ids: ids, group_id: groupId, only } = body;
  return {
    tasks: ids === undefined ? { groupId: groupId! } : { ids },
    outcomes: only.outcomes ?? null,
    minReward: only.min_reward ?? null,
    roles: only.roles ?? null,
  };
}

function lines(context: Context, services: HandlerServices, values: AsyncIterable<unknown>): Response {
  return linesResponse(values, (thrown) => {
    const error = toVerbatimError(thrown);
    const { pathname: path } = new URL(context.req.url);
    logFailure(services.logger, error, { request_id: context.get("requestId"), path });
    return errorBody(error);
  });
}

/** What the teacher would do here, and the tokens with which the student would do it. */
async function label(context: Context, services: HandlerServices): Promise<Response> {
  const body = await readBody(context, LabelBody, services);
  const labeller = configured(services.labeller);
  const { signal } = watchClient(context);
  const { renderer } = services.models.default;
  const conversation = readChatConversation({
    messages: [
      ...(body.system_prompt === undefined ? [] : [{ role: "system", content: body.system_prompt }]),
      ...(body.task_prompt === undefined ? [] : [{ role: "user", content: body.task_prompt }]),
      ...body.history ?? [],
    ],
    tools: body.tools,
    chat_template_kwargs: body.chat_template_kwargs,
  });
  const input = body.input_ids === undefined ? { conversation } : {
    ids: checkedIds(body.input_ids, renderer.tokenizer.vocabSize, "input_ids"),
    tools: conversation.tools,
    opensReasoning: false,
  };
  const labelled = await labeller.label(input, { maxTokens: body.max_tokens ?? null }, signal);
  if (labelled.action === null) return context.json(labelled);
  const { action, text, droppedCalls } = labelled;
  const target = await targetOf(action, renderer, body.input_ids === undefined ? { conversation, signal } : { signal });
  return context.json({ action, text, dropped_calls: droppedCalls, ...target });
}

/** The student's tokens for an action; null with the reason where its template has none. */
async function targetOf(
  action: CanonicalAction,
  renderer: Renderer,
  options: { readonly conversation?: Conversation; readonly signal: AbortSignal },
): Promise<{ target_ids: number[] | null; target_reason?: string }> {
  try {
    return { target_ids: Array.from(await renderAction(action, renderer, options)) };
  } catch (cause) {
    if (!(cause instanceof VerbatimError) || options.signal.aborted) throw cause;
    return { target_ids: null, target_reason: cause.message };
  }
}

/** What there is only with a teacher. */
function configured<T>(service: T | null): T {
  if (service !== null) return service;
  throw new VerbatimError("not_ready", "No teacher is configured: set TEACHER_SGLANG_URL to its address", {
    details: { variable: "TEACHER_SGLANG_URL" },
    retryable: false,
  });
}
