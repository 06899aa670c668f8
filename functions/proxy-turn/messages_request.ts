/** Anthropic messages: reads requests. It only translates; answers are written beside it. */

import { VerbatimError } from "../../shared/core/errors.ts";
import { parseWith } from "../../shared/http/parse_with.ts";
import type { ParserRequest } from "../../shared/ports/renderer.ts";
import { ANTHROPIC_FIELDS, AnthropicRequest } from "../../shared/schemas/anthropic_messages.ts";
import { anthropicErrorBody } from "./anthropic_errors.ts";
import { anthropicServedForm, readAnthropicConversation } from "./anthropic_messages.ts";
import { constrain, type Shape } from "./constrain.ts";
import type { Dialect, ReadContext } from "./dialect.ts";
import { messagesBody } from "./messages_answer.ts";
import { messagesFrames } from "./messages_frames.ts";
import { namedFrame } from "./named_frame.ts";
import { isJson, unsupported } from "./read_json.ts";
import { readWishes } from "./read_wishes.ts";

/** Reads a request. */
export async function readMessagesRequest(json: unknown, context: ReadContext): Promise<Dialect> {
  const body = parseWith(AnthropicRequest, json, "body");
  refuseThread(body);
  const model = body.model ?? null;
  const { conversation, ignoredFields } = readAnthropicConversation({
    messages: body.messages,
    system: body.system ?? undefined,
    tools: body.tools ?? undefined,
    chat_template_kwargs: body.chat_template_kwargs ?? undefined,
  });
  const shape = shapeOf(body);
  const constraint = await constrain({ model, conversation, shape }, context);
  const wished = readWishes(body, { limit: body.max_tokens ?? null, stops: body.stop_sequences ?? [] });
  return {
    name: "messages",
    request: {
      model,
      conversation,
      toolChoice: constraint.toolChoice,
      parallelCalls: shape.parallelCalls,
      wished: { ...wished, ...constraint.wished },
      ignoredFields: [...ignoredOf(body), ...ignoredFields].sort(),
      stream: body.stream === true,
      keepsInput: false,
    },
    formOf: anthropicServedForm,
    keepAlive: namedFrame({ type: "ping" }),
    body: messagesBody,
    frames: messagesFrames,
    failure: (error) => namedFrame({ type: "error", ...anthropicErrorBody(error) }),
  };
}

/** Conversations are kept by the client here. Told in these words, clients send them whole. */
function refuseThread(body: AnthropicRequest): void {
  if ((body.thread ?? null) === null) return;
  const reason = "no conversations are kept by this endpoint: send all messages";
  throw new VerbatimError("unsupported", `Field "thread": ${reason}`, {
    details: { field: "thread", reason, error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
}

function ignoredOf(body: AnthropicRequest): string[] {
  return [
    ...Object.keys(body).filter((field) => !ANTHROPIC_FIELDS.has(field)),
    ...Object.keys(body.output_config ?? {}).filter((field) => field !== "format").map((name) =>
      `output_config.${name}`
    ),
    ...(forbidsParallelCalls(body) ? ["tool_choice.disable_parallel_tool_use"] : []),
  ];
}

function forbidsParallelCalls({ tool_choice: choice }: AnthropicRequest): boolean {
  return choice?.disable_parallel_tool_use === true;
}

function shapeOf(body: AnthropicRequest): Shape {
  return {
    toolChoice: { field: "tool_choice", choice: toolChoiceOf(body.tool_choice) },
    parallelCalls: !forbidsParallelCalls(body),
    schema: schemaOf(body),
  };
}

function toolChoiceOf(choice: AnthropicRequest["tool_choice"]): ParserRequest["toolChoice"] {
  switch (choice?.type) {
    case "any":
      return "required";
    case "tool":
      return { name: choice.name };
    case "none":
      return "none";
    default:
      return "auto";
  }
}

function schemaOf(body: AnthropicRequest): Shape["schema"] {
  const inConfig = body.output_config?.format ?? null;
  const format = inConfig ?? body.output_format ?? null;
  if (format === null) return null;
  const field = inConfig === null ? "output_format" : "output_config.format";
  if (format.type !== "json_schema") throw unsupported(`${field}.type`, `only json_schema, not "${format.type}"`);
  const schema = format.schema ?? {};
  if (!isJson(schema)) throw unsupported(`${field}.schema`, "it is nested too deeply");
  return { field, schema };
}
