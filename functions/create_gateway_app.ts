/** Every function in one app: each at its slug, the agents' endpoints at the root too. */

import { Hono } from "hono";
import { VerbatimError } from "../shared/core/errors.ts";
import { requireAdmin } from "../shared/http/authenticate.ts";
import { errorResponse, logFailure, toVerbatimError } from "../shared/http/error_response.ts";
import { loggedPath } from "../shared/http/logged_path.ts";
import { createGenerateApp } from "./generate/handler.ts";
import type { HandlerServices } from "./handler_services.ts";
import { createEnginesApp } from "./operations/engines_handler.ts";
import { createOperationsApp } from "./operations/handler.ts";
import { createProxyTurnApp } from "./proxy-turn/handler.ts";
import { createTasksApp } from "./tasks/handler.ts";
import { createTeacherScoreApp } from "./teacher-score/handler.ts";
import { createTokenizeApp, createTokenizeRootApp } from "./tokenize/handler.ts";

/** A function's slug. */
export type Slug = "generate" | "tokenize" | "teacher-score" | "proxy-turn" | "tasks";

/** All functions, for one process. */
export function createGatewayApp(services: HandlerServices): Hono {
  const app = createBase(services);
  const admin = adminOnly(services);
  for (const path of ["/detokenize", "/parse_function_call", "/separate_reasoning"]) app.use(path, admin);
  for (const slug of ["generate", "tokenize", "teacher-score", "proxy-turn", "tasks"] as const) {
    mount(app, slug, services);
  }
  for (const path of ["/engines", "/engines/*"]) app.use(path, admin);
  app.route("/engines", createEnginesApp(services));
  app.route("/", createOperationsApp(services));
  app.route("/", createTokenizeRootApp(services));
  app.route("/", createProxyTurnApp(services));
  return app;
}

/** One function, for a host that deploys each on its own and keeps the slug in the path. */
export function createFunctionApp(slug: Slug, services: HandlerServices): Hono {
  const app = createBase(services);
  mount(app, slug, services);
  return app;
}

function mount(app: Hono, slug: Slug, services: HandlerServices): void {
  const path = `/${slug}`;
  if (slug !== "proxy-turn") {
    const admin = adminOnly(services);
    app.use(path, admin);
    app.use(`${path}/*`, admin);
  }
  switch (slug) {
    case "generate":
      app.route(path, createGenerateApp(services));
      break;
    case "tokenize":
      app.route(path, createTokenizeApp(services));
      break;
    case "teacher-score":
      app.route(path, createTeacherScoreApp(services));
      break;
    case "tasks":
      app.route(path, createTasksApp(services));
      break;
    case "proxy-turn":
      app.route(path, createProxyTurnApp(services));
  }
}

function adminOnly(services: HandlerServices): ReturnType<typeof requireAdmin> {
  return requireAdmin({
    adminKey: services.adminKey,
    isTaskKey: async (keyHash) => await services.tasks.ofKey(keyHash) !== null,
  });
}

/** Request ids and the one place where errors become answers. */
function createBase(services: HandlerServices): Hono {
  const app = new Hono({ strict: false });
  app.use(async function requestId(context, next) {
    const given = context.req.header("x-request-id");
    const id = given !== undefined && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${services.ids.hex(24)}`;
    context.set("requestId", id);
    await next();
    context.res.headers.set("x-request-id", id);
  });
  app.notFound((context) => {
    const path = new URL(context.req.url).pathname;
    return errorResponse(context, new VerbatimError("not_found", `There is no ${context.req.method} ${path} here`));
  });
  app.onError((thrown, context) => {
    const error = toVerbatimError(thrown);
    logFailure(services.logger, error, {
      request_id: context.get("requestId"),
      path: loggedPath(context.req.url),
    });
    const response = errorResponse(context, error);
    response.headers.set("x-request-id", context.get("requestId"));
    return response;
  });
  return app;
}

declare module "hono" {
  interface ContextVariableMap {
    /** Id of the request, in its answer and in the log. */
    requestId: string;
  }
}
