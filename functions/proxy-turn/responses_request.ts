/** OpenAI Responses: reads requests. It only translates; answers are written beside it. */

import type { Json } from "../../shared/core/message.ts";
import { parseWith } from "../../shared/http/parse_with.ts";
import type { ParserRequest } from "../../shared/ports/renderer.ts";
import { RESPONSES_FIELDS, ResponsesRequest } from "../../shared/schemas/responses.ts";
import { constrain, type Shape } from "./constrain.ts";
import type { Dialect, ReadContext } from "./dialect.ts";
import { EarlierAnswers } from "./earlier_answers.ts";
import { invalid, isJson, unsupported } from "./read_json.ts";
import { readWishes } from "./read_wishes.ts";
import { responseBody, type ResponseView } from "./responses_answer.ts";
import { ResponseFrames } from "./responses_frames.ts";
import { readResponsesConversation, responsesServedForm } from "./responses_messages.ts";

/** Reads a request. Ids of earlier answers are looked up among the task's own turns. */
export async function readResponsesRequest(json: unknown, context: ReadContext): Promise<Dialect> {
  const body = parseWith(ResponsesRequest, json, "body");
  refuseUnsupported(body);
  const model = body.model ?? null;
  const earlier = new EarlierAnswers(await context.earlierTurns());
  const previous = body.previous_response_id ?? null;
  const settings: Record<string, Json> = { ...body.chat_template_kwargs };
  if (typeof body.reasoning?.effort === "string") settings.reasoning_effort = body.reasoning.effort;
  const { conversation, ignoredFields } = readResponsesConversation(
    {
      input: body.input ?? undefined,
      instructions: body.instructions,
      tools: body.tools ?? undefined,
      chat_template_kwargs: settings,
    },
    (id) => earlier.item(id),
    { before: previous === null ? [] : earlier.conversation(previous, "previous_response_id") },
  );
  if (conversation.messages.length === 0) throw invalid("input", "must hold at least one item");
  const shape = shapeOf(body);
  const constraint = await constrain({ model, conversation, shape }, context);
  const stops = typeof body.stop === "string" ? [body.stop] : body.stop ?? [];
  const view = viewOf(body);
  const frames = new ResponseFrames(view);
  return {
    name: "responses",
    request: {
      model,
      conversation,
      toolChoice: constraint.toolChoice,
      parallelCalls: shape.parallelCalls,
      wished: { ...readWishes(body, { limit: body.max_output_tokens ?? null, stops }), ...constraint.wished },
      ignoredFields: [...ignoredOf(body), ...ignoredFields].sort(),
      stream: body.stream === true,
      keepsInput: body.store !== false,
    },
    formOf: responsesServedForm,
    keepAlive: ": keep-alive\n\n",
    body: (answer) => JSON.stringify(responseBody(answer, view)),
    frames: (events) => frames.of(events),
    failure: (error) => frames.failure(error),
  };
}

/** What an answer repeats of its request. */
function viewOf(body: ResponsesRequest): ResponseView {
  return {
    summary: (body.reasoning?.summary ?? null) !== null,
    encrypted: (body.include ?? []).includes("reasoning.encrypted_content"),
    request: {
      instructions: body.instructions ?? null,
      max_output_tokens: body.max_output_tokens ?? null,
      metadata: body.metadata ?? {},
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      previous_response_id: body.previous_response_id ?? null,
      reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? null },
      store: body.store ?? true,
      temperature: body.temperature ?? 1,
      text: body.text ?? { format: { type: "text" } },
      tool_choice: body.tool_choice ?? "auto",
      tools: body.tools ?? [],
      top_p: body.top_p ?? 1,
      truncation: body.truncation ?? "disabled",
    },
  };
}

function ignoredOf(body: ResponsesRequest): string[] {
  const include = (body.include ?? []).filter((name) => name !== "reasoning.encrypted_content");
  const choice = body.tool_choice;
  return [
    ...Object.keys(body).filter((field) => !RESPONSES_FIELDS.has(field)),
    ...include.map((name) => `include.${name}`),
    // What happens anyway is not ignored.
    ...(body.parallel_tool_calls === false ? ["parallel_tool_calls"] : []),
    ...(body.truncation === "auto" ? ["truncation"] : []),
    ...((body.text?.verbosity ?? null) === null ? [] : ["text.verbosity"]),
    ...(typeof choice === "object" && choice?.type === "allowed_tools" ? ["tool_choice.tools"] : []),
  ];
}

function shapeOf(body: ResponsesRequest): Shape {
  return {
    toolChoice: { field: "tool_choice", choice: toolChoiceOf(body.tool_choice) },
    parallelCalls: body.parallel_tool_calls !== false,
    schema: schemaOf(body.text?.format),
  };
}

function toolChoiceOf(choice: ResponsesRequest["tool_choice"]): ParserRequest["toolChoice"] {
  if (choice === null || choice === undefined) return "auto";
  if (typeof choice === "string") return choice;
  if (choice.type === "allowed_tools") return choice.mode ?? "auto";
  if (choice.type !== "function") {
    throw unsupported("tool_choice.type", `only function and allowed_tools, not ${JSON.stringify(choice.type)}`);
  }
  if (typeof choice.name !== "string") throw invalid("tool_choice.name", "must be a string");
  return { name: choice.name };
}

function schemaOf(format: NonNullable<ResponsesRequest["text"]>["format"]): Shape["schema"] {
  if (format === null || format === undefined) return null;
  const field = "text.format";
  switch (format.type) {
    case "text":
      return null;
    case "json_object":
      return { field, schema: { type: "object" } };
    case "json_schema": {
      const schema = format.schema ?? {};
      if (!isJson(schema)) throw unsupported(`${field}.schema`, "it is nested too deeply");
      return { field, schema };
    }
    default:
      throw unsupported(`${field}.type`, `only text, json_object and json_schema, not ${JSON.stringify(format.type)}`);
  }
}

/** What would change the answer and can't be honoured is refused, never dropped. */
function refuseUnsupported(body: ResponsesRequest): void {
  if (body.background === true) throw unsupported("background", "responses are given while the client waits");
  for (const field of ["conversation", "prompt"] as const) {
    if ((body[field] ?? null) !== null) {
      throw unsupported(field, "nothing of the kind is kept here: send input, or previous_response_id");
    }
  }
  if ((body.top_logprobs ?? 0) > 0) throw unsupported("top_logprobs", "this endpoint gives no logprobs");
}
