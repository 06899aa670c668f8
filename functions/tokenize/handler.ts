/** Encode, increment, decode and parse, as the gateway itself does them. Thin. */

import { type Context, Hono } from "hono";
import { checkedIds } from "../../shared/core/checked_ids.ts";
import { VerbatimError } from "../../shared/core/errors.ts";
import { readBody } from "../../shared/http/read_body.ts";
import {
  DecodeRequest,
  IncrementRequest,
  ParseFunctionCallRequest,
  ParseRequest,
  SeparateReasoningRequest,
  TokenizeRequest,
} from "../../shared/schemas/tokenize.ts";
import { parseText } from "../../shared/services/parse_text.ts";
import type { HandlerServices } from "../handler_services.ts";
import { readChatConversation } from "../proxy-turn/chat_messages.ts";

/** The tokenize endpoints, to be mounted at their slug. */
export function createTokenizeApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/", (context) => encode(context, services));
  app.post("/increment", (context) => increment(context, services));
  app.post("/decode", (context) => decode(context, services));
  app.post("/parse", (context) => parse(context, services));
  app.post("/parse_function_call", (context) => parseFunctionCall(context, services));
  app.post("/separate_reasoning", (context) => separateReasoning(context, services));
  return app;
}

/** SGLang's own paths at the root. */
export function createTokenizeRootApp(services: HandlerServices): Hono {
  const app = new Hono();
  app.post("/detokenize", (context) => decode(context, services));
  app.post("/parse_function_call", (context) => parseFunctionCall(context, services));
  app.post("/separate_reasoning", (context) => separateReasoning(context, services));
  return app;
}

async function encode(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, TokenizeRequest, services);
  const model = services.models.resolve(request.model);
  const max_model_len = model.maxContextTokens;
  if (request.messages !== undefined) {
    const rendered = await model.renderer.renderPrompt(
      readChatConversation({
        messages: request.messages,
        tools: request.tools ?? undefined,
        chat_template_kwargs: request.chat_template_kwargs,
      }),
      { addGenerationPrompt: request.add_generation_prompt },
    );
    return context.json({ tokens: Array.from(rendered.ids), count: rendered.ids.length, max_model_len });
  }
  const options = { addSpecialTokens: request.add_special_tokens };
  const { tokenizer } = model.renderer;
  if (Array.isArray(request.prompt)) {
    const tokens: number[][] = [];
    for (const text of request.prompt) tokens.push(Array.from(await tokenizer.encodeAsync(text, options)));
    return context.json({ tokens, count: tokens.map((ids) => ids.length), max_model_len });
  }
  const tokens = Array.from(await tokenizer.encodeAsync(request.prompt ?? "", options));
  return context.json({ tokens, count: tokens.length, max_model_len });
}

async function increment(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, IncrementRequest, services);
  const { renderer } = services.models.resolve(request.model);
  const appended = readChatConversation({
    messages: request.appended,
    tools: request.tools ?? undefined,
    chat_template_kwargs: request.chat_template_kwargs,
  });
  const rendered = await renderer.renderIncrement({
    appended: appended.messages,
    tools: appended.tools,
    settings: appended.settings,
    lastToken: request.closed ? renderer.stopTokenIds[0] ?? null : null,
  });
  return context.json({ tokens: Array.from(rendered.ids), count: rendered.ids.length });
}

async function decode(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, DecodeRequest, services);
  const { tokenizer } = services.models.resolve(request.model).renderer;
  const decodeOne = (ids: readonly number[], field: string) =>
    tokenizer.decode(checkedIds(ids, tokenizer.vocabSize, field), { skipSpecialTokens: request.skip_special_tokens });
  const { tokens } = request;
  const text = isListOfLists(tokens)
    ? tokens.map((ids, k) => decodeOne(ids, `tokens.${k}`))
    : decodeOne(tokens, "tokens");
  return context.json({ text });
}

function isListOfLists(tokens: number[] | number[][]): tokens is number[][] {
  return Array.isArray(tokens[0]);
}

async function parse(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, ParseRequest, services);
  const { renderer } = services.models.default;
  const parsed = parseText(
    {
      input: request.tokens === undefined ? { text: request.text ?? "" } : { tokens: request.tokens },
      tools: readChatConversation({ messages: [], tools: request.tools ?? undefined }).tools,
      toolChoice: typeof request.tool_choice === "string"
        ? request.tool_choice
        : { name: request.tool_choice.function.name },
      toolCallParser: request.tool_call_parser,
      reasoningParser: request.reasoning_parser,
      opensReasoning: request.prompt_opens_reasoning,
      splits: request.chunks ?? [],
    },
    renderer,
  );
  return context.json({
    reasoning: parsed.reasoning,
    content: parsed.content,
    tool_calls: parsed.toolCalls.map((call, k) => ({
      id: renderer.callId({ name: call.name, priorCalls: k, random: (digits) => services.ids.hex(digits) }),
      type: "function",
      function: { name: call.name, arguments: call.arguments },
    })),
    parse: parsed.parse,
  });
}

async function parseFunctionCall(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, ParseFunctionCallRequest, services);
  const { renderer } = services.models.default;
  const parsed = parseText({
    input: { text: request.text },
    tools: readChatConversation({ messages: [], tools: request.tools }).tools,
    toolChoice: "auto",
    toolCallParser: request.tool_call_parser,
    reasoningParser: null,
    opensReasoning: false,
    splits: [],
  }, renderer);
  return context.json({
    normal_text: parsed.content ?? "",
    calls: parsed.toolCalls.map((call, tool_index) => ({ tool_index, name: call.name, parameters: call.arguments })),
  });
}

async function separateReasoning(context: Context, services: HandlerServices): Promise<Response> {
  const request = await readBody(context, SeparateReasoningRequest, services);
  const { renderer } = services.models.default;
  if (request.reasoning_parser === undefined && renderer.reasoningParser === null) {
    throw new VerbatimError("invalid_request", "No reasoning parser is configured: name one in reasoning_parser", {
      details: { field: "reasoning_parser", reason: "none is configured" },
    });
  }
  const parsed = parseText({
    input: { text: request.text },
    tools: [],
    toolChoice: "none",
    toolCallParser: null,
    reasoningParser: request.reasoning_parser,
    opensReasoning: false,
    splits: [],
  }, renderer);
  return context.json({ reasoning_text: parsed.reasoning ?? "", text: parsed.content ?? "" });
}
