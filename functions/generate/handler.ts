/** `POST /generate`: thin; services/generate.ts does the work. */

import { type Context, Hono } from "hono";
import { VerbatimError } from "../../shared/core/errors.ts";
import { checkTextSampling } from "../../shared/core/text_sampling.ts";
import { watchClient } from "../../shared/http/client_signal.ts";
import { errorBody, logFailure, toVerbatimError } from "../../shared/http/error_response.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { dataFrame, sseResponse } from "../../shared/http/sse.ts";
import { GenerateRequest } from "../../shared/schemas/generate.ts";
import { generate, type GenerateEvent } from "../../shared/services/generate.ts";
import { generateText } from "../../shared/services/text_models/generate_text.ts";
import type { HandlerServices } from "../handler_services.ts";
import { readChatConversation } from "../proxy-turn/chat_messages.ts";

/** The generate endpoint, to be mounted at its slug. */
export function createGenerateApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/", async (context) => {
    const request = await readBody(context, GenerateRequest, services);
    if (request.sampling_params?.skip_special_tokens === true) {
      const reason = "text keeps its special tokens; tokenize/decode leaves them out";
      throw new VerbatimError("unsupported", `Field "sampling_params.skip_special_tokens": ${reason}`, {
        details: { field: "sampling_params.skip_special_tokens", reason },
      });
    }
    const watch = watchClient(context);
    const events = eventsOf(request, services, watch.signal);
    if (request.stream) return await stream(context, services, events);
    for await (const event of events) {
      if (event.type === "result") return context.json(event.result);
    }
    throw new Error("The generation ended without a result");
  });
  return app;
}

/** The events of a request, by the kind of model that it names. */
function eventsOf(
  request: GenerateRequest,
  services: HandlerServices,
  signal: AbortSignal,
): AsyncGenerator<GenerateEvent> {
  const conversation = request.input_ids !== undefined ? null : readChatConversation({
    messages: request.messages,
    tools: request.tools,
    chat_template_kwargs: request.chat_template_kwargs,
  });
  const sampling = request.sampling_params ?? {};
  services.models.assertKnown(request.model);
  const textModel = services.models.textModel(request.model);
  if (textModel !== null) {
    if (conversation === null) {
      const reason = "a text-level backend takes messages, not tokens";
      throw new VerbatimError("unsupported", `Field "input_ids": ${reason}`, {
        details: { field: "input_ids", reason },
      });
    }
    checkTextSampling(sampling, "sampling_params.");
    return generateText({ model: textModel, conversation, sampling, stream: request.stream }, services.metrics, signal);
  }
  return generate(
    {
      model: services.models.resolve(request.model),
      input: conversation === null ? { ids: request.input_ids ?? [] } : { conversation },
      sampling,
      routingKey: request.routing_key ?? null,
      stream: request.stream,
    },
    services.ids,
    signal,
  );
}

async function stream(
  context: Context,
  services: HandlerServices,
  events: AsyncIterable<GenerateEvent>,
): Promise<Response> {
  return await sseResponse(frames(events), {
    clock: services.clock,
    keepAliveMs: services.keepAliveMs,
    keepAlive: ": keep-alive\n\n",
    errorFrame(thrown) {
      const error = toVerbatimError(thrown);
      logFailure(services.logger, error, { request_id: context.get("requestId"), path: "/generate", stream: true });
      return dataFrame(errorBody(error));
    },
    headers: { "x-request-id": context.get("requestId") },
  });
}

async function* frames(events: AsyncIterable<GenerateEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type === "delta") {
      const { token_ids, logprobs, text } = event;
      yield dataFrame({ token_ids, logprobs, text });
    } else {
      yield dataFrame({ ...event.result, done: true });
    }
  }
  yield "data: [DONE]\n\n";
}
