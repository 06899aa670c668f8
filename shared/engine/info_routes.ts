/** Routes that tell of the engine: health, model, load, tokenizer. They change nothing. */

import { type Context, Hono } from "hono";
import * as z from "zod";
import { VerbatimError } from "../core/errors.ts";
import type { EngineCore } from "./engine_core.ts";

/** The SGLang version whose behaviour is followed. */
const VERSION = "0.5.15.post1";
/** After so long a health probe is given up. */
const HEALTH_TIMEOUT_MS = 20_000;

const TokenizeBody = z.object({
  model: z.string().nullish(),
  prompt: z.union([z.string(), z.array(z.string())]).nullish(),
  messages: z.array(z.unknown()).nullish(),
  add_special_tokens: z.boolean().nullish(),
});
const Ids = z.array(z.number().int());
const DetokenizeBody = z.object({
  model: z.string().nullish(),
  tokens: z.union([Ids, z.array(Ids)]),
  skip_special_tokens: z.boolean().nullish(),
});

/** The routes. */
export function infoRoutes(core: EngineCore): Hono {
  const { scheduler, tokenizer, options } = core;
  const app = new Hono();

  const health = async (context: Context): Promise<Response> => {
    // The probe is a request of one token: a pause holds it up like any other.
    const waiting = new AbortController();
    const late = core.sleep(HEALTH_TIMEOUT_MS, waiting.signal).then(() => true, () => false);
    const admitted = scheduler.admitted(AbortSignal.any([waiting.signal, context.req.raw.signal])).then(() => false);
    const timedOut = await Promise.race([admitted, late]);
    waiting.abort();
    return new Response(null, { status: timedOut ? 503 : 200 });
  };
  app.get("/health", health);
  app.get("/health_generate", health);

  app.on("GET", ["/model_info", "/get_model_info"], (context) =>
    context.json({
      model_path: core.modelPath,
      tokenizer_path: options.tokenizerPath ?? options.modelName,
      is_generation: true,
      preferred_sampling_params: null,
      weight_version: core.weightVersion,
      has_image_understanding: false,
      has_audio_understanding: false,
      model_type: "embedded",
      architectures: ["EmbeddedForCausalLM"],
    }));

  app.on("GET", ["/server_info", "/get_server_info"], (context) =>
    context.json({
      model_path: core.modelPath,
      tokenizer_path: options.tokenizerPath ?? options.modelName,
      served_model_name: options.modelName,
      api_key: options.apiKey ?? null,
      context_length: options.maxContextTokens,
      grammar_backend: "embedded",
      incremental_streaming_output: options.incremental ?? false,
      stream_interval: options.streamInterval ?? 1,
      weight_version: core.weightVersion,
      max_total_num_tokens: options.kvPoolTokens ?? options.cacheTokens ?? 2_000_000,
      max_req_input_len: (options.kvPoolTokens ?? options.maxContextTokens) - 1,
      internal_states: [{
        num_running_reqs: scheduler.running,
        num_waiting_reqs: scheduler.queued,
        effective_max_running_requests_per_dp: options.maxRunningRequests ?? 256,
        last_gen_throughput: 0,
        weight_version: core.weightVersion,
      }],
      version: VERSION,
    }));

  app.on("GET", ["/weight_version", "/get_weight_version"], (context) =>
    context.json({
      error: {
        message: "Endpoint '/get_weight_version' or '/weight_version' is deprecated. Use '/model_info' instead.",
      },
    }, 404));

  app.get("/v1/models", (context) => context.json({ object: "list", data: [modelCard(core)] }));
  app.get("/v1/models/:model{.+}", (context) => {
    const model = context.req.param("model");
    if (model === options.modelName) return context.json(modelCard(core));
    const message = `The model '${model}' does not exist`;
    return context.json(
      { error: { message, type: "invalid_request_error", param: "model", code: "model_not_found" } },
      404,
    );
  });

  app.get("/get_load", (context) =>
    context.json([{
      dp_rank: 0,
      num_reqs: scheduler.running + scheduler.queued,
      num_waiting_reqs: scheduler.queued,
      num_tokens: scheduler.runningTokens,
      ts_tic: core.now() / 1000,
    }]));
  app.get("/v1/loads", (context) => context.json(loads(core)));

  for (const path of ["/tokenize", "/v1/tokenize"]) {
    app.post(path, async (context) => {
      const body = TokenizeBody.safeParse(await readJson(context));
      if (!body.success) return badRequest(context, z.prettifyError(body.error));
      const { prompt, messages, add_special_tokens } = body.data;
      if (messages) return badRequest(context, "Messages are not served here: the engine has no chat template.");
      if (prompt === undefined || prompt === null) {
        return badRequest(context, "Exactly one of prompt or messages must be provided.");
      }
      const addSpecialTokens = add_special_tokens ?? true;
      const encode = async (text: string): Promise<number[]> => [
        ...await tokenizer.encodeAsync(text, { addSpecialTokens }),
      ];
      const max_model_len = options.maxContextTokens;
      if (typeof prompt === "string") {
        const tokens = await encode(prompt);
        return context.json({ tokens, count: tokens.length, max_model_len });
      }
      const tokens = await Promise.all(prompt.map(encode));
      return context.json({ tokens, count: tokens.map((ids) => ids.length), max_model_len });
    });
  }

  for (const path of ["/detokenize", "/v1/detokenize"]) {
    app.post(path, async (context) => {
      const body = DetokenizeBody.safeParse(await readJson(context));
      if (!body.success) return badRequest(context, z.prettifyError(body.error));
      const skipSpecialTokens = body.data.skip_special_tokens ?? true;
      const { tokens } = body.data;
      try {
        const decode = (ids: number[]): string => tokenizer.decode(ids, { skipSpecialTokens });
        return context.json({ text: isNested(tokens) ? tokens.map(decode) : decode(tokens) });
      } catch (error) {
        if (!(error instanceof VerbatimError)) throw error;
        return badRequest(context, error.message);
      }
    });
  }
  return app;
}

function isNested(tokens: number[] | number[][]): tokens is number[][] {
  return Array.isArray(tokens[0]);
}

function modelCard(core: EngineCore): Record<string, unknown> {
  const { modelName, maxContextTokens } = core.options;
  return {
    id: modelName,
    object: "model",
    created: Math.floor(core.now() / 1000),
    owned_by: "sglang",
    root: modelName,
    parent: null,
    max_model_len: maxContextTokens,
  };
}

function loads(core: EngineCore): Record<string, unknown> {
  const { scheduler, options } = core;
  const { running, queued, runningTokens } = scheduler;
  const capacity = options.kvPoolTokens ?? options.cacheTokens ?? 2_000_000;
  const maxRunning = options.maxRunningRequests ?? 256;
  const usage = runningTokens / capacity;
  return {
    timestamp: new Date(core.now()).toISOString(),
    version: VERSION,
    dp_rank_count: 1,
    loads: [{
      dp_rank: 0,
      timestamp: core.now() / 1000,
      num_running_reqs: running,
      num_waiting_reqs: queued,
      num_used_tokens: runningTokens,
      max_total_num_tokens: capacity,
      token_usage: usage,
      gen_throughput: 0,
      cache_hit_rate: 0,
      utilization: running / maxRunning,
      max_running_requests: maxRunning,
    }],
    aggregate: {
      total_running_reqs: running,
      total_waiting_reqs: queued,
      total_reqs: running + queued,
      avg_token_usage: usage,
      avg_throughput: 0,
      avg_utilization: running / maxRunning,
    },
  };
}

async function readJson(context: Context): Promise<unknown> {
  try {
    return await context.req.json();
  } catch {
    return undefined;
  }
}

function badRequest(context: Context, message: string): Response {
  return context.json({ object: "error", message, type: "BadRequestError", param: null, code: 400 }, 400);
}
