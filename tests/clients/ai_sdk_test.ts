/** Vercel's AI SDK over its three providers: generateText and streamText with tools. */

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, type LanguageModel, stepCountIs, streamText, tool, type ToolSet } from "ai";
import { CALLS, REQUEST, runTool, TOOLS } from "./job.ts";
import { type Endpoint, trial } from "./trial.ts";

/** Arguments come back written anew. Messages has them as values, where white space does not count. */
const WRITTEN_ANEW = { echoes: ["representation", "representation", "representation"] };
const AS_VALUES = { echoes: ["representation", "representation", "exact"] };

type Options = Record<string, Record<string, boolean | string[]>>;

const PROVIDERS: readonly (readonly [
  name: string,
  modelOf: (endpoint: Endpoint) => LanguageModel,
  options?: Options,
])[] = [
  [
    "openai-compatible",
    ({ openaiBaseUrl: baseURL, apiKey, model }) =>
      createOpenAICompatible({ name: "verbatim", baseURL, apiKey, includeUsage: true })(model),
  ],
  ["openai, chat", ({ openaiBaseUrl: baseURL, apiKey, model }) => createOpenAI({ baseURL, apiKey }).chat(model)],
  ["openai, Responses", ({ openaiBaseUrl: baseURL, apiKey, model }) => createOpenAI({ baseURL, apiKey })(model)],
  [
    "openai, Responses without store",
    ({ openaiBaseUrl: baseURL, apiKey, model }) => createOpenAI({ baseURL, apiKey })(model),
    { openai: { store: false, include: ["reasoning.encrypted_content"] } },
  ],
  [
    "anthropic",
    ({ anthropicBaseUrl, apiKey, model }) => createAnthropic({ baseURL: `${anthropicBaseUrl}/v1`, apiKey })(model),
  ],
];

for (const [name, modelOf, options] of PROVIDERS) {
  const expected = name === "anthropic" ? AS_VALUES : WRITTEN_ANEW;

  Deno.test(`ai: generateText over ${name}`, async () => {
    await trial(async (endpoint) => {
      const called: string[] = [];
      const { text } = await generateText(settings(modelOf(endpoint), called, options));
      assert.deepEqual(called, CALLS);
      return text;
    }, expected);
  });

  Deno.test(`ai: streamText over ${name}`, async () => {
    await trial(async (endpoint) => {
      const called: string[] = [];
      const result = streamText({
        ...settings(modelOf(endpoint), called, options),
        onError: ({ error }) => assert.fail(String(error)),
      });
      let text = "";
      for await (const piece of result.textStream) text += piece;
      assert.deepEqual(called, CALLS);
      return await result.text;
    }, expected);
  });
}

function settings(model: LanguageModel, called: string[], providerOptions: Options = {}) {
  const tools: ToolSet = Object.fromEntries(TOOLS.map(({ name, description, parameters }) => [
    name,
    tool({
      description,
      inputSchema: jsonSchema<object>({ ...parameters }),
      execute(args) {
        called.push(name);
        return runTool(name, args);
      },
    }),
  ]));
  return {
    model,
    tools,
    providerOptions,
    prompt: REQUEST,
    maxOutputTokens: 1000,
    stopWhen: stepCountIs(8),
    maxRetries: 0,
  };
}
