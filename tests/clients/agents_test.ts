/** The OpenAI Agents SDK over chat and over Responses, whole and streamed. */

import assert from "node:assert/strict";
import {
  Agent,
  type Model,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { CALLS, REQUEST, runTool, TOOLS } from "./job.ts";
import { type Endpoint, trial } from "./trial.ts";

setTracingDisabled(true);

interface Way {
  readonly name: string;
  readonly modelOf: (client: OpenAI, model: string) => Model;
  readonly stream: boolean;
  readonly echoes: readonly string[];
}

const chat = (client: OpenAI, model: string): Model => new OpenAIChatCompletionsModel(client, model);
const responses = (client: OpenAI, model: string): Model => new OpenAIResponsesModel(client, model);
const EXACT = ["exact", "exact", "exact"];

const WAYS: readonly Way[] = [
  { name: "chat", modelOf: chat, stream: false, echoes: ["representation", "representation", "exact"] },
  {
    name: "chat, streamed",
    modelOf: chat,
    stream: true,
    echoes: ["representation", "representation", "exact"],
  },
  { name: "Responses", modelOf: responses, stream: false, echoes: EXACT },
  { name: "Responses, streamed", modelOf: responses, stream: true, echoes: EXACT },
];

for (const way of WAYS) {
  Deno.test(`agents: ${way.name}`, async () => {
    await trial((endpoint) => work(endpoint, way), { echoes: way.echoes });
  });
}

async function work({ openaiBaseUrl, apiKey, model }: Endpoint, way: Way): Promise<string> {
  const client = new OpenAI({ baseURL: openaiBaseUrl, apiKey, maxRetries: 0 });
  const called: string[] = [];
  const agent = new Agent({
    name: "worker",
    model: way.modelOf(client, model),
    tools: TOOLS.map(({ name, description, parameters }) =>
      tool({
        name,
        description,
        parameters: { ...parameters, additionalProperties: true },
        strict: false,
        execute(args) {
          called.push(name);
          return runTool(name, args);
        },
      })
    ),
  });
  const result = way.stream ? await run(agent, REQUEST, { stream: true }) : await run(agent, REQUEST);
  if ("completed" in result) await result.completed;
  assert.deepEqual(called.toSorted(), CALLS.toSorted());
  return String(result.finalOutput);
}
