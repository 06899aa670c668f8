/** The teacher's endpoints. Thin: shapes in, services, shapes out. */

import { type Context, Hono } from "hono";
import { VerbatimError } from "../../shared/core/errors.ts";
import { safetensors } from "../../shared/core/safetensors.ts";
import { watchClient } from "../../shared/http/client_signal.ts";
import { partsBody, tensorsResponse, wantsTensors } from "../../shared/http/parts_body.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { TeacherScoreBody } from "../../shared/schemas/teacher_score.ts";
import { scoreJson, scoreResponse, scoreTensors } from "../../shared/services/score_response.ts";
import type { TeacherScorer } from "../../shared/services/score_with_teacher.ts";
import type { HandlerServices } from "../handler_services.ts";

/** The teacher endpoints, to be mounted at their slug. */
export function createTeacherScoreApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/", (context) => score(context, services));
  return app;
}

async function score(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, TeacherScoreBody, services);
  const scored = await scoreResponse(request, teacherOf(services), watchClient(context).signal);
  if (wantsTensors(context.req.header("accept"))) {
    return tensorsResponse(safetensors(scoreTensors(scored), { verbatim: JSON.stringify(scored.rest) }));
  }
  return new Response(partsBody(scoreJson(scored)), { headers: { "content-type": "application/json" } });
}

/** The teacher, where there is one. */
function teacherOf(services: HandlerServices): TeacherScorer {
  if (services.teacher !== null) return services.teacher;
  throw new VerbatimError("not_ready", "No teacher is configured: set TEACHER_SGLANG_URL to its address", {
    details: { variable: "TEACHER_SGLANG_URL" },
    retryable: false,
  });
}
