/** LangChain's ChatOpenAI with bound tools, not streamed, over chat and over Responses. */

import assert from "node:assert/strict";
import { type AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { CALLS, REQUEST, runTool, TOOLS } from "./job.ts";
import { type Endpoint, trial } from "./trial.ts";

async function work({ openaiBaseUrl, apiKey, model }: Endpoint, useResponsesApi: boolean): Promise<string> {
  const chat = new ChatOpenAI({
    model,
    apiKey,
    useResponsesApi,
    maxRetries: 0,
    configuration: { baseURL: openaiBaseUrl },
  }).bindTools(TOOLS.map((tool) => ({ type: "function" as const, function: tool })));
  const messages: BaseMessage[] = [new HumanMessage(REQUEST)];
  const called: string[] = [];
  for (;;) {
    const reply: AIMessage = await chat.invoke(messages);
    messages.push(reply);
    const calls = reply.tool_calls ?? [];
    if (calls.length === 0) {
      assert.deepEqual(called, CALLS);
      return reply.text;
    }
    for (const { id, name, args } of calls) {
      called.push(name);
      messages.push(new ToolMessage({ tool_call_id: id ?? "", name, content: runTool(name, args) }));
    }
  }
}

Deno.test("langchain: ChatOpenAI", async () => {
  await trial((endpoint) => work(endpoint, false), { echoes: ["representation", "representation", "representation"] });
});

Deno.test("langchain: ChatOpenAI over Responses", async () => {
  await trial((endpoint) => work(endpoint, true), { echoes: ["exact", "exact", "exact"] });
});
