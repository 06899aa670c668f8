/** `POST /generate`: thin; services/generate.ts does the work. */

import { type Context, Hono } from "hono";
import { VerbatimError } from "../../shared/core/errors.ts";
import { watchClient } from "../../shared/http/client_signal.ts";
import { errorBody, logFailure, toVerbatimError } from "../../shared/http/error_response.ts";
import { readBody } from "../../shared/http/read_body.ts";
import { dataFrame, sseResponse } from "../../shared/http/sse.ts";
import { GenerateRequest } from "../../shared/schemas/generate.ts";
import { generate, type GenerateEvent } from "../../shared/services/generate.ts";
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
    const events = generate(
      {
        model: services.models.resolve(request.model),
        input: request.input_ids !== undefined ? { ids: request.input_ids } : {
          conversation: readChatConversation({
            messages: request.messages,
            tools: request.tools,
            chat_template_kwargs: request.chat_template_kwargs,
          }),
        },
        sampling: request.sampling_params ?? {},
        routingKey: request.routing_key ?? null,
        stream: request.stream,
      },
      services.ids,
      watch.signal,
    );
    if (request.stream) return await stream(context, services, events);
    for await (const event of events) {
      if (event.type === "result") return context.json(event.result);
    }
    throw new Error("The generation ended without a result");
  });
  return app;
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
