/** The OpenAI client: chat whole, streamed and with its tool runner; Responses whole, by id and streamed. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import { CALLS, REQUEST, runTool, TOOLS } from "./job.ts";
import { type Endpoint, trial } from "./trial.ts";

const CHAT_TOOLS = TOOLS.map((tool) => ({ type: "function" as const, function: tool }));
const RESPONSE_TOOLS = TOOLS.map((tool) => ({ type: "function" as const, ...tool, strict: false }));
const EXACT = { echoes: ["exact", "exact", "exact"] };

function clientOf({ openaiBaseUrl, apiKey }: Endpoint): OpenAI {
  return new OpenAI({ baseURL: openaiBaseUrl, apiKey, maxRetries: 0 });
}

/** The loop that most agents write themselves. */
async function chat(
  endpoint: Endpoint,
  complete: (
    client: OpenAI,
    body: OpenAI.ChatCompletionCreateParamsNonStreaming,
  ) => Promise<OpenAI.ChatCompletionMessage>,
): Promise<string> {
  const client = clientOf(endpoint);
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: REQUEST }];
  const called: string[] = [];
  for (;;) {
    const message = await complete(client, { model: endpoint.model, messages, tools: CHAT_TOOLS });
    messages.push(message);
    const calls = (message.tool_calls ?? []).filter((call) => call.type === "function");
    if (calls.length === 0) {
      assert.deepEqual(called, CALLS);
      return message.content ?? "";
    }
    for (const { id, function: { name, arguments: args } } of calls) {
      called.push(name);
      messages.push({ role: "tool", tool_call_id: id, content: runTool(name, JSON.parse(args)) });
    }
  }
}

function onlyMessage(completion: OpenAI.ChatCompletion): OpenAI.ChatCompletionMessage {
  const [choice] = completion.choices;
  assert.ok(choice !== undefined);
  return choice.message;
}

Deno.test("openai: chat.completions.create", async () => {
  await trial(
    (endpoint) => chat(endpoint, async (client, body) => onlyMessage(await client.chat.completions.create(body))),
    EXACT,
  );
});

Deno.test("openai: chat.completions.stream", async () => {
  await trial(
    (endpoint) =>
      chat(endpoint, async (client, body) => {
        const stream = client.chat.completions.stream({
          ...body,
          stream: true,
          stream_options: { include_usage: true },
        });
        const completion = await stream.finalChatCompletion();
        assert.ok((completion.usage?.completion_tokens ?? 0) > 5);
        return onlyMessage(completion);
      }),
    // Joined, the chunks of a reply without text have "" where the whole reply has null.
    { echoes: ["exact", "exact", "representation"] },
  );
});

Deno.test("openai: chat.completions.runTools", async () => {
  await trial(async (endpoint) => {
    const runner = clientOf(endpoint).chat.completions.runTools({
      model: endpoint.model,
      messages: [{ role: "user", content: REQUEST }],
      tools: TOOLS.map((tool) => ({
        type: "function" as const,
        function: {
          ...tool,
          parse: (text: string): object => JSON.parse(text),
          function: (args: object) => runTool(tool.name, args),
        },
      })),
    });
    return await runner.finalContent() ?? "";
  }, EXACT);
});

/** A loop over Responses; `input` decides how what came before is named. */
async function respond(
  endpoint: Endpoint,
  complete: (
    client: OpenAI,
    body: OpenAI.Responses.ResponseCreateParamsNonStreaming,
  ) => Promise<OpenAI.Responses.Response>,
  options: { readonly byId: boolean },
): Promise<string> {
  const client = clientOf(endpoint);
  const history: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: REQUEST }];
  let input = history;
  let previous: string | undefined;
  for (;;) {
    const response = await complete(client, {
      model: endpoint.model,
      input,
      tools: RESPONSE_TOOLS,
      ...(options.byId ? { previous_response_id: previous ?? null } : { store: false }),
    });
    const outputs = response.output.filter((item) => item.type === "function_call").map((call) => ({
      type: "function_call_output" as const,
      call_id: call.call_id,
      output: runTool(call.name, JSON.parse(call.arguments)),
    }));
    if (outputs.length === 0) return response.output_text;
    for (const item of response.output) {
      if (item.type === "reasoning" || item.type === "message" || item.type === "function_call") history.push(item);
    }
    history.push(...outputs);
    previous = response.id;
    input = options.byId ? outputs : history;
  }
}

Deno.test("openai: responses.create with the whole history", async () => {
  await trial((endpoint) => respond(endpoint, (client, body) => client.responses.create(body), { byId: false }), EXACT);
});

Deno.test("openai: responses.create with previous_response_id", async () => {
  await trial((endpoint) => respond(endpoint, (client, body) => client.responses.create(body), { byId: true }), EXACT);
});

Deno.test("openai: responses.stream", async () => {
  await trial(
    (endpoint) =>
      respond(endpoint, (client, body) => client.responses.stream({ ...body, stream: true }).finalResponse(), {
        byId: false,
      }),
    EXACT,
  );
});
