/** The recording proxy: agents' endpoints. Thin: a dialect translates, services/record_turn.ts does the work. */

import { type Context, Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { VerbatimError } from "../../shared/core/errors.ts";
import type { TaskRecord } from "../../shared/core/task.ts";
import { keyOf } from "../../shared/http/authenticate.ts";
import { type ClientWatch, watchClient } from "../../shared/http/client_signal.ts";
import { logFailure, retryHeaders, toVerbatimError } from "../../shared/http/error_response.ts";
import { loggedPath } from "../../shared/http/logged_path.ts";
import { sseResponse } from "../../shared/http/sse.ts";
import { wholeBody } from "../../shared/http/whole_body.ts";
import type { AgentCall, Following } from "../../shared/services/turns/agent_call.ts";
import type { Model, TextModel } from "../../shared/services/model_catalog.ts";
import { type Answer, type CallEvent, wholeAnswer } from "../../shared/services/turns/shared_call.ts";
import type { HandlerServices } from "../handler_services.ts";
import { anthropicErrors } from "./anthropic_errors.ts";
import { type Caller, identifyCaller } from "./identify_caller.ts";
import { type AgentBody, readAgentBody } from "./read_agent_body.ts";
import { readChatCompletion } from "./chat_completions.ts";
import type { Dialect, DialectErrors, ReadContext, ReadDialect } from "./dialect.ts";
import { readMessagesRequest } from "./messages_request.ts";
import { openaiErrors, responsesErrors } from "./openai_errors.ts";
import { readResponsesRequest } from "./responses_request.ts";

/** The agents' endpoints under `/v1`, and under `/k/KEY/v1` for scaffolds that can only be given a URL. */
export function createProxyTurnApp(services: HandlerServices): Hono {
  const app = new Hono();
  for (const prefix of ["/v1", "/k/:key/v1"]) {
    // Clients of Anthropic's API add /v1 to their base URL, also to one that ends in it.
    for (const path of [`${prefix}/messages`, `${prefix}/v1/messages`]) {
      app.use(path, anthropicRequestId);
      app.use(`${path}/*`, anthropicRequestId);
      app.post(path, (context) => answer(context, services, anthropicErrors, readMessagesRequest));
      app.post(`${path}/count_tokens`, (context) => countTokens(context, services));
    }
    app.post(`${prefix}/chat/completions`, (context) => answer(context, services, openaiErrors, readChatCompletion));
    app.post(`${prefix}/responses`, (context) => answer(context, services, responsesErrors, readResponsesRequest));
    app.get(`${prefix}/models`, (context) => models(context, services));
    app.get(`${prefix}/models/:model{.+}`, (context) => oneModel(context, services));
  }
  return app;
}

/** One agent call, from its key to its answer. Every failure is written in the dialect. */
async function answer(
  context: Context,
  services: HandlerServices,
  errors: DialectErrors,
  read: ReadDialect,
): Promise<Response> {
  const watch = watchClient(context);
  try {
    const caller = await identifyCaller(keyOf(context), services);
    const body = await readAgentBody(context, services, caller);
    const dialect = await read(body.json, readContext(services, caller));
    const following = begin(context, services, caller, { ...body, dialect });
    return dialect.request.stream
      ? await streamed(context, services, dialect, following, watch)
      : await whole(context, services, dialect, following, watch);
  } catch (thrown) {
    return failed(context, services, errors, watch.signal.aborted ? clientGone(thrown) : toVerbatimError(thrown));
  }
}

/** A body and what a dialect made of it. */
interface ReadCall extends Omit<AgentBody, "json"> {
  readonly dialect: Dialect;
}

/** How long the prompt of a messages request is, of which nothing is sent. */
async function countTokens(context: Context, services: HandlerServices): Promise<Response> {
  const watch = watchClient(context);
  try {
    const caller = await identifyCaller(keyOf(context), services);
    const body = await readAgentBody(context, services, caller);
    const dialect = await readMessagesRequest(body.json, readContext(services, caller));
    const model = services.models.resolve(dialect.request.model ?? taskOf(caller)?.settings.model);
    const call = { ...callOf(context, services, caller, { ...body, dialect }), model };
    return context.json({ input_tokens: await services.recorder.countPrompt(call, watch.signal) });
  } catch (thrown) {
    return failed(context, services, anthropicErrors, toVerbatimError(thrown));
  } finally {
    void watch.settle();
  }
}

/** The request's id where clients of Anthropic's API look for it. */
async function anthropicRequestId(context: Context, next: () => Promise<void>): Promise<void> {
  await next();
  context.res.headers.set("request-id", context.get("requestId"));
}

function readContext(services: HandlerServices, caller: Caller): ReadContext {
  const read = caller.kind === "task" ? caller.read : null;
  const settings = read?.task.settings ?? null;
  return {
    rendererOf: (model) =>
      textModelOf(model, services, caller) === null
        ? services.models.resolve(model ?? settings?.model ?? null).renderer
        : null,
    earlierTurns: async () => read === null || !read.task.settings.capture ? [] : await services.recorder.turnsOf(read),
  };
}

/** Hands the call to who serves its model. */
function begin(context: Context, services: HandlerServices, caller: Caller, read: ReadCall): Following {
  const { model: wished, parallelCalls } = read.dialect.request;
  const call = callOf(context, services, caller, read);
  const textModel = textModelOf(wished, services, caller);
  if (textModel !== null) {
    return services.textRelay.begin({ ...call, model: textModel, modelName: textModel.name, parallelCalls });
  }
  const model = services.models.resolve(wished ?? taskOf(caller)?.settings.model);
  return services.recorder.begin({ ...call, model });
}

/** The text-level model that a call means, or null. In a task with capture there is none: its name is then refused. */
function textModelOf(wished: string | null, services: HandlerServices, caller: Caller): TextModel | null {
  const settings = taskOf(caller)?.settings ?? null;
  if (settings?.capture === true) return null;
  if ((settings?.model ?? null) === null) services.models.assertKnown(wished);
  return services.models.textModel(wished, settings?.model);
}

function taskOf(caller: Caller): TaskRecord | null {
  return caller.kind === "task" ? caller.read.task : null;
}

function callOf(
  context: Context,
  services: HandlerServices,
  caller: Caller,
  read: ReadCall,
): Omit<AgentCall, "model"> {
  const { dialect, body, nearest } = read;
  const { request } = dialect;
  return {
    read: caller.kind === "task" ? caller.read : null,
    fairKey: caller.kind === "task" ? caller.read.task.uid : caller.keyHash,
    modelName: request.model ?? services.models.default.name,
    dialect: dialect.name,
    conversation: request.conversation,
    body,
    nearest,
    toolChoice: request.toolChoice,
    wished: request.wished,
    ignoredFields: request.ignoredFields,
    stream: request.stream,
    ...(request.topLogprobs === undefined ? {} : { topLogprobs: request.topLogprobs }),
    keepsInput: request.keepsInput,
    isRetry: Number(context.req.header("x-stainless-retry-count") ?? "0") > 0,
    header: (name) => context.req.header(name) ?? null,
    formOf: dialect.formOf,
    arrivedAtMs: services.clock.now(),
  };
}

async function whole(
  context: Context,
  services: HandlerServices,
  dialect: Dialect,
  following: Following,
  watch: ClientWatch,
): Promise<Response> {
  const result = await wholeAnswer(following.waiter, watch.signal);
  const { body, byteLength } = wholeBody(dialect.body(result), (allSent) => {
    services.background.run(
      "note delivery",
      watch.settle().then((sent) => following.settled(result, allSent && sent)),
    );
  });
  return context.body(body, 200, {
    "content-type": "application/json",
    "content-length": String(byteLength),
    "x-verbatim-turn": String(result.turn ?? "none"),
  });
}

async function streamed(
  context: Context,
  services: HandlerServices,
  dialect: Dialect,
  following: Following,
  watch: ClientWatch,
): Promise<Response> {
  let result: Answer | null = null;
  const events = tap(following.waiter, (ended) => result = ended);
  watch.signal.addEventListener("abort", () => following.waiter.leave(), { once: true });
  return await sseResponse(dialect.frames(events), {
    clock: services.clock,
    keepAliveMs: services.keepAliveMs,
    keepAlive: dialect.keepAlive,
    errorFrame(thrown) {
      const error = toVerbatimError(thrown);
      logFailure(services.logger, error, { request_id: context.get("requestId"), stream: true });
      return dialect.failure(error);
    },
    headers: { "x-request-id": context.get("requestId") },
    onEnd(allSent) {
      services.background.run(
        "note delivery",
        watch.settle().then((sent) => result === null ? undefined : following.settled(result, allSent && sent)),
      );
    },
    onCancel: () => following.waiter.leave(),
  });
}

/** Passes events on and notes the answer they end with. */
async function* tap(events: AsyncIterable<CallEvent>, onAnswer: (answer: Answer) => void): AsyncGenerator<CallEvent> {
  for await (const event of events) {
    if (event.type === "end") onAnswer(event.answer);
    yield event;
  }
}

function clientGone(cause: unknown): VerbatimError {
  return new VerbatimError("client_gone", "The client hung up before its answer", { cause });
}

function failed(
  context: Context,
  services: HandlerServices,
  errors: DialectErrors,
  error: VerbatimError,
): Response {
  logFailure(services.logger, error, {
    request_id: context.get("requestId"),
    path: loggedPath(context.req.url),
  });
  const { status, body } = errors.response(error, context.get("requestId"));
  return context.json(body as Record<string, unknown>, status as ContentfulStatusCode, {
    "x-should-retry": String(error.retryable),
    "x-verbatim-turn": "none",
    ...retryHeaders(error),
  });
}

/** The models, to anyone with an agent's key. */
async function models(context: Context, services: HandlerServices): Promise<Response> {
  try {
    await identifyCaller(keyOf(context), services);
    const data = [...services.models.list().map(modelObject), ...services.models.listText().map(textModelObject)];
    return context.json({ object: "list", data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id });
  } catch (thrown) {
    return failed(context, services, openaiErrors, toVerbatimError(thrown));
  }
}

async function oneModel(context: Context, services: HandlerServices): Promise<Response> {
  try {
    await identifyCaller(keyOf(context), services);
    const name = context.req.param("model") ?? "";
    const model = services.models.list().find((candidate) => candidate.name === name);
    const textModel = services.models.textModel(name);
    if (textModel !== null) return context.json(textModelObject(textModel));
    if (model === undefined) {
      throw new VerbatimError("model_not_found", `There is no model "${name}" here`, { details: { field: "model" } });
    }
    return context.json(modelObject(model));
  } catch (thrown) {
    return failed(context, services, openaiErrors, toVerbatimError(thrown));
  }
}

function modelObject(model: Model): Record<string, unknown> {
  return { ...namedObject(model), max_model_len: model.maxContextTokens };
}

function textModelObject(model: TextModel): Record<string, unknown> {
  return { ...namedObject(model), evaluation_only: true };
}

/** In the words of both APIs at once. */
function namedObject(model: Model | TextModel): Record<string, unknown> {
  return {
    id: model.name,
    object: "model",
    type: "model",
    display_name: model.name,
    created: model.createdAtS,
    created_at: new Date(model.createdAtS * 1000).toISOString(),
    owned_by: "verbatim",
  };
}
