/**
 * Strands' TypeScript SDK over chat (streamed, which it always is) and over Responses. Over chat it sends back no text,
 * and of parallel calls the last one alone. Its mode that leaves the history to the server is not tried: within one
 * invocation it sends both the history and the id of the response that ends it.
 */

import { Agent, FunctionTool } from "@strands-agents/sdk";
import { OpenAIModel } from "@strands-agents/sdk/models/openai";
import OpenAI from "openai";
import { REQUEST, runTool, TOOLS } from "./job.ts";
import { type Endpoint, trial } from "./trial.ts";

async function work(endpoint: Endpoint, api: "chat" | "responses"): Promise<string> {
  const client = new OpenAI({ baseURL: endpoint.openaiBaseUrl, apiKey: endpoint.apiKey, maxRetries: 0 });
  const options = { modelId: endpoint.model, client };
  const agent = new Agent({
    model: new OpenAIModel(api === "chat" ? { api, ...options } : { api, ...options }),
    printer: false,
    tools: TOOLS.map(({ name, description, parameters }) =>
      new FunctionTool({ name, description, inputSchema: parameters, callback: (args) => runTool(name, args) })
    ),
  });
  const result = await agent.invoke(REQUEST);
  return result.lastMessage.content.flatMap((block) => block.type === "textBlock" ? [block.text] : []).join("");
}

Deno.test("strands: chat", async () => {
  await trial((endpoint) => work(endpoint, "chat"), {
    echoes: ["text_dropped", "calls_dropped", "representation"],
  });
});

Deno.test("strands: Responses", async () => {
  await trial((endpoint) => work(endpoint, "responses"), {
    echoes: ["representation", "representation", "representation"],
  });
});
