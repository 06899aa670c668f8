/** The teacher's endpoints. Thin: shapes in, services, shapes out. */

import { type Context, Hono } from "hono";
import { VerbatimError } from "../../shared/core/errors.ts";
import { safetensors } from "../../shared/core/safetensors.ts";
import { watchClient } from "../../shared/http/client_signal.ts";
import { errorBody, logFailure, toVerbatimError } from "../../shared/http/error_response.ts";
import { linesResponse } from "../../shared/http/lines_response.ts";
import { partsBody, tensorsResponse, wantsTensors } from "../../shared/http/parts_body.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { ScoreTasksBody, TeacherScoreBody } from "../../shared/schemas/teacher_score.ts";
import { scoreJson, scoreResponse, scoreTensors } from "../../shared/services/score_response.ts";
import type { HandlerServices } from "../handler_services.ts";

/** The teacher endpoints, to be mounted at their slug. */
export function createTeacherScoreApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/", (context) => score(context, services));
  app.post("/tasks", (context) => scoreTasks(context, services));
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
  const { task_ids: ids, group_id: groupId, top_k: topK, only } = await readBody(context, ScoreTasksBody, services);
  const scorer = configured(services.taskScorer);
  const { signal } = watchClient(context);
  const lines = scorer.run({
    tasks: ids === undefined ? { groupId: groupId! } : { ids },
    topK: topK ?? null,
    outcomes: only.outcomes ?? null,
    minReward: only.min_reward ?? null,
    roles: only.roles ?? null,
  }, signal);
  return linesResponse(lines, (thrown) => {
    const error = toVerbatimError(thrown);
    logFailure(services.logger, error, { request_id: context.get("requestId"), path: "/teacher-score/tasks" });
    return errorBody(error);
  });
}

/** What there is only with a teacher. */
function configured<T>(service: T | null): T {
  if (service !== null) return service;
  throw new VerbatimError("not_ready", "No teacher is configured: set TEACHER_SGLANG_URL to its address", {
    details: { variable: "TEACHER_SGLANG_URL" },
    retryable: false,
  });
}
