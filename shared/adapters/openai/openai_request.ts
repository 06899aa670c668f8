/** A backend request as the body of OpenAI's chat completions. What the API has no word for is refused here. */

import type { ChatCompletionCreateParams, ChatCompletionToolChoiceOption } from "openai/resources";
import { VerbatimError } from "../../core/errors.ts";
import { checkTextSampling } from "../../core/text_sampling.ts";
import type { BackendRequest } from "../../ports/model_backend.ts";
import { chatMessage, chatTool } from "./openai_messages.ts";

/** What of the backend's settings stands in a body. */
export interface BodyOptions {
  /** The model's name there. */
  readonly model: string;
  readonly tokenLimitField: "max_completion_tokens" | "max_tokens";
}

type Body = Omit<ChatCompletionCreateParams, "stream" | "stream_options">;

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;

/** The body, without whether it is streamed. Refusals are `unsupported`. */
export function chatBody(request: BackendRequest, options: BodyOptions): Body {
  const { messages, tools = [], sampling_params: sampling } = request;
  if (messages === undefined || request.input_ids !== undefined) {
    throw refused("input_ids", "a text-level backend takes messages, not tokens");
  }
  checkTextSampling(sampling, "");
  return {
    model: options.model,
    messages: messages.map(chatMessage),
    ...(sampling.max_new_tokens === undefined ? {} : { [options.tokenLimitField]: sampling.max_new_tokens }),
    ...(sampling.temperature === undefined ? {} : { temperature: sampling.temperature }),
    ...(sampling.top_p === undefined ? {} : { top_p: sampling.top_p }),
    ...(sampling.frequency_penalty === undefined ? {} : { frequency_penalty: sampling.frequency_penalty }),
    ...(sampling.presence_penalty === undefined ? {} : { presence_penalty: sampling.presence_penalty }),
    ...(sampling.stop === undefined || sampling.stop.length === 0 ? {} : { stop: sampling.stop }),
    ...(sampling.sampling_seed === undefined ? {} : { seed: sampling.sampling_seed }),
    ...(sampling.json_schema === undefined ? {} : { response_format: responseFormat(sampling.json_schema) }),
    ...(request.reasoning_effort === undefined ? {} : { reasoning_effort: effortOf(request.reasoning_effort) }),
    ...(tools.length === 0 ? {} : {
      tools: tools.map(chatTool),
      tool_choice: toolChoice(request.tool_choice ?? "auto"),
      ...(request.parallel_tool_calls === false ? { parallel_tool_calls: false } : {}),
    }),
  };
}

/** A guess at the tokens that a body will be charged for, before anybody has counted: four bytes of text are about one. */
export function guessTokens(body: Body, limit: number | undefined): number {
  const bytes = new TextEncoder().encode(JSON.stringify([body.messages, body.tools ?? []])).length;
  return Math.ceil(bytes / 4) + (limit ?? GUESSED_REPLY);
}

/** Tokens of a reply without a limit. */
const GUESSED_REPLY = 1024;

function toolChoice(choice: NonNullable<BackendRequest["tool_choice"]>): ChatCompletionToolChoiceOption {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function responseFormat(schemaText: string): NonNullable<Body["response_format"]> {
  const schema: Record<string, unknown> = JSON.parse(schemaText);
  // Any object will do: that is the API's older form, which does not want every property named.
  if (Object.keys(schema).length === 1 && schema.type === "object") return { type: "json_object" };
  return { type: "json_schema", json_schema: { name: "answer", schema, strict: true } };
}

function effortOf(effort: string): (typeof EFFORTS)[number] {
  const known = EFFORTS.find((name) => name === effort);
  if (known !== undefined) return known;
  throw refused("reasoning_effort", `one of ${EFFORTS.join(", ")}`);
}

function refused(field: string, reason: string): VerbatimError {
  return new VerbatimError("unsupported", `Field "${field}": ${reason}`, { details: { field, reason } });
}
