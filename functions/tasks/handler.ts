/** Tasks: create, inspect, finish, export, drop. Thin: shapes in, services, shapes out. */

import { type Context, Hono } from "hono";
import type { TaskRecord } from "../../shared/core/task.ts";
import { VerbatimError } from "../../shared/core/errors.ts";
import { checkTextSampling } from "../../shared/core/text_sampling.ts";
import { safetensors } from "../../shared/core/safetensors.ts";
import { tensorsResponse, wantsTensors } from "../../shared/http/parts_body.ts";
import { parseWith } from "../../shared/http/parse_with.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { CreateTask, FinishTask, ListTasks, PutReward, ResultQuery } from "../../shared/schemas/tasks.ts";
import { checkRollin } from "../../shared/services/tasks/check_rollin.ts";
import { checkSamplingIds } from "../../shared/services/turns/check_sampling_ids.ts";
import { exportTensors } from "../../shared/services/exports/export_tensors.ts";
import type { Model } from "../../shared/services/model_catalog.ts";
import type { NewTaskSettings } from "../../shared/services/tasks/task_service.ts";
import { taskSettings } from "../../shared/services/tasks/task_settings.ts";
import type { HandlerServices } from "../handler_services.ts";
import { normalizeRewardsRoute } from "./normalize_rewards.ts";
import { taskBody, taskSummary, turnBody } from "./task_body.ts";

/** The tasks endpoints, to be mounted at their slug. */
export function createTasksApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/", (context) => create(context, services));
  app.post("/rewards/normalize", (context) => normalizeRewardsRoute(context, services));
  app.get("/", (context) => list(context, services));
  app.get("/:id", (context) => get(context, services));
  app.delete("/:id", (context) => drop(context, services));
  app.get("/:id/turns", (context) => turns(context, services));
  app.get("/:id/explain", (context) => explain(context, services));
  app.post("/:id/finish", (context) => finish(context, services));
  app.put("/:id/reward", (context) => reward(context, services));
  app.get("/:id/result", (context) => result(context, services));
  return app;
}

async function create(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, CreateTask, { ...services, emptyIsObject: true });
  const idempotencyKey = context.req.header("idempotency-key") ?? null;
  if (idempotencyKey !== null && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new VerbatimError("invalid_request", "The Idempotency-Key must be 1 to 255 printable ASCII characters", {
      details: { field: "Idempotency-Key", reason: "1 to 255 printable ASCII characters" },
    });
  }
  const settings = taskSettings(request);
  const model = checkedModel(settings, services);
  if (settings.score === "per_turn" && services.taskScorer === null) {
    const reason = "no teacher is configured: set TEACHER_SGLANG_URL";
    throw new VerbatimError("unsupported", `Field "score": ${reason}`, { details: { field: "score", reason } });
  }
  // What follows needs capture, and so a model of tokens.
  if (settings.rollin !== undefined && model !== null) await checkRollin(model.renderer, services.labeller);
  if (model !== null) await services.extrasProbe.assertSaid(model, settings.captureExtras ?? []);
  const giveBack = model === null ? () => {} : services.engines.takeTask(model);
  const { task, key, created } = await services.tasks.create({
    taskId: request.task_id ?? null,
    settings,
    ttlMs: request.ttl_s === undefined ? null : request.ttl_s * 1000,
    idempotencyKey,
  }).catch((thrown: unknown) => {
    giveBack();
    throw thrown;
  });
  if (!created) giveBack();
  const base = services.publicUrl ?? originOf(context);
  return context.json({
    task_id: task.taskId,
    api_key: key,
    base_url: `${base}/v1`,
    anthropic_base_url: base,
    expires_at: new Date(task.expiresAtMs).toISOString(),
  }, 201);
}

/** The model of tokens, which can do what the settings ask of it; null: a text-level one. That serves no task with capture. */
function checkedModel(settings: NewTaskSettings, services: HandlerServices): Model | null {
  const { fixedSampling, maxContextTokens } = settings;
  const textModel = settings.capture ? null : services.models.textModel(settings.model);
  if (textModel !== null) {
    checkTextSampling(fixedSampling, "sampling.fixed.");
    if (maxContextTokens === null) return null;
    const reason = "a text-level backend has no tokens to count before they are sent";
    throw new VerbatimError("unsupported", `Field "max_context_tokens": ${reason}`, {
      details: { field: "max_context_tokens", reason },
    });
  }
  const model = services.models.resolve(settings.model);
  checkSamplingIds(fixedSampling, model.renderer.tokenizer.vocabSize, "sampling.fixed.");
  if (maxContextTokens === null || maxContextTokens <= model.maxContextTokens) return model;
  throw new VerbatimError("invalid_request", `Field "max_context_tokens": the model takes ${model.maxContextTokens}`, {
    details: { field: "max_context_tokens", reason: `at most ${model.maxContextTokens}` },
  });
}

async function list(context: Context, services: HandlerServices): Promise<Response> {
  const query = parseWith(ListTasks, context.req.query(), "query");
  const tasks: TaskRecord[] = [];
  let cursor = query.cursor;
  // The store filters by group, not by status: pages are read until this one is full.
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await services.tasks.list({
      limit: query.limit - tasks.length,
      ...(query.group_id === undefined ? {} : { groupId: query.group_id }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    tasks.push(
      ...page.tasks.filter((task) => query.status === undefined || services.tasks.statusOf(task) === query.status),
    );
    cursor = page.cursor ?? undefined;
    if (cursor === undefined || tasks.length >= query.limit) break;
  }
  return context.json({
    tasks: tasks.map((task) => taskSummary(task, services.tasks.statusOf(task))),
    cursor: cursor ?? null,
  });
}

/** Bounds the work of one list call; a caller goes on with the cursor. */
const MAX_PAGES = 100;

async function get(context: Context, services: HandlerServices): Promise<Response> {
  const { task } = await services.tasks.get(context.req.param("id") ?? "");
  return context.json(await taskBody(task, services));
}

async function drop(context: Context, services: HandlerServices): Promise<Response> {
  const task = await services.closer.drop(context.req.param("id") ?? "");
  return context.json({ task_id: task.taskId, status: task.status });
}

async function turns(context: Context, services: HandlerServices): Promise<Response> {
  const { task } = await services.tasks.getReadable(context.req.param("id") ?? "");
  const judged = await services.exporter.judged(task);
  return context.json({ turns: judged.turns.map((turn) => turnBody(turn, judged)) });
}

async function explain(context: Context, services: HandlerServices): Promise<Response> {
  const { task } = await services.tasks.getReadable(context.req.param("id") ?? "");
  return context.json(await services.exporter.explain(task));
}

async function finish(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, FinishTask, { ...services, emptyIsObject: true });
  const { task, closedNow } = await services.closer.finish(context.req.param("id") ?? "", {
    outcome: request.outcome ?? null,
    cause: request.cause ?? null,
    reward: request.reward ?? null,
    metadata: request.metadata ?? {},
    waitMs: request.wait_s * 1000,
  });
  const region = await services.exporter.region(task);
  if (closedNow) services.metrics.taskFinished({ outcome: task.outcome ?? "completed", reason: region.reason });
  return context.json(region);
}

async function reward(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, PutReward, services);
  const task = await services.tasks.reward(context.req.param("id") ?? "", {
    reward: request.reward,
    outcome: request.outcome ?? null,
    perTurn: request.per_turn ?? null,
  });
  return context.json(await taskBody(task, services));
}

async function result(context: Context, services: HandlerServices): Promise<Response> {
  const query = parseWith(ResultQuery, context.req.query(), "query");
  const { task } = await services.tasks.getReadable(context.req.param("id") ?? "");
  const { format, roles, max_version_span: maxVersionSpan, ce_sentinel: ceSentinel, extras } = query;
  const exported = await services.exporter.result(task, { format, roles, maxVersionSpan, ceSentinel, extras });
  if (format === "slime" || !wantsTensors(context.req.header("accept"))) return context.json(exported);
  const { tensors, rest } = exportTensors(exported);
  return tensorsResponse(safetensors(tensors, { verbatim: JSON.stringify(rest) }));
}

/** Where the caller reached us, as far as the request tells; a proxy in front is named by PUBLIC_URL. */
function originOf(context: Context): string {
  return new URL(context.req.url).origin;
}
