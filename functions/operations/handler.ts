/** Is the process alive, is it ready, and what has it done? */

import { Hono } from "hono";
import { openapiDocument } from "./openapi.ts";
import type { HandlerServices } from "../handler_services.ts";

const READY_TIMEOUT_MS = 5000;

/** `GET /healthz`, `GET /readyz`, `GET /metrics` and `GET /openapi.json`. */
export function createOperationsApp(services: HandlerServices): Hono {
  const app = new Hono();
  let document: Record<string, unknown> | null = null;
  app.get("/healthz", (context) => context.json({ status: "ok" }));
  app.get("/openapi.json", (context) => context.json(document ??= openapiDocument()));
  app.get("/metrics", async (context) => {
    const { contentType, body } = await services.metrics.text();
    return context.body(body, 200, { "content-type": contentType });
  });
  app.get("/readyz", async (context) => {
    const models = await Promise.all(
      services.models.list().map(async (model) => {
        const { renderer } = model;
        const engine = await model.engine.info(AbortSignal.timeout(READY_TIMEOUT_MS)).then(
          (info) => ({ reachable: true, model_path: info.modelPath, weight_version: info.weightVersion }),
          (cause: unknown) => ({ reachable: false, reason: cause instanceof Error ? cause.message : String(cause) }),
        );
        return {
          name: model.name,
          max_context_tokens: model.maxContextTokens,
          // A pause is no failure: calls are taken, and wait.
          paused: model.generations.gate.paused,
          engine,
          renderer: {
            family: renderer.family,
            tool_call_parser: renderer.toolCallParser,
            reasoning_parser: renderer.reasoningParser,
            vocab_size: renderer.tokenizer.vocabSize,
            tokenizer_fingerprint: renderer.tokenizer.fingerprint,
            stop_token_ids: renderer.stopTokenIds,
            checks: renderer.checks,
          },
        };
      }),
    );
    const reasons = models.filter((model) => !model.engine.reachable).map((model) =>
      `The engine of model "${model.name}" can't be reached`
    );
    // Text-level models are named, not asked: their APIs charge for answers.
    const textModels = services.models.listText().map(({ name }) => ({ name }));
    const ready = reasons.length === 0;
    const body = { ready, reasons, models, text_models: textModels, teacher: await teacherState(services) };
    return context.json(body, ready ? 200 : 503);
  });
  return app;
}

/** Agents are served without the teacher: one that is away is told, and decides nothing. */
async function teacherState({ teacher }: HandlerServices): Promise<Record<string, unknown> | null> {
  if (teacher === null) return null;
  const reached = await teacher.options.teacher.info(AbortSignal.timeout(READY_TIMEOUT_MS)).then(
    () => ({ reachable: true }),
    (cause: unknown) => ({ reachable: false, reason: cause instanceof Error ? cause.message : String(cause) }),
  );
  return { ...teacher.identity, ...reached };
}
