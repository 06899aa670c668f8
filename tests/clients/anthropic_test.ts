/** Anthropic's client: messages whole and streamed, its tool runner, and its token count. */

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { CALLS, REQUEST, runTool, TOOLS } from "./job.ts";
import { type Endpoint, trial } from "./trial.ts";

const MESSAGE_TOOLS: Anthropic.Tool[] = TOOLS.map(({ name, description, parameters }) => ({
  name,
  description,
  input_schema: parameters,
}));
/** Values come back as JavaScript has them: the large number loses digits, 60.0 its fraction. */
const ECHOES = { echoes: ["representation", "representation", "exact"] };

function clientOf({ anthropicBaseUrl, apiKey }: Endpoint): Anthropic {
  return new Anthropic({ baseURL: anthropicBaseUrl, apiKey, maxRetries: 0 });
}

/** A loop of one's own, with the count before each call. */
async function converse(
  endpoint: Endpoint,
  complete: (client: Anthropic, body: Anthropic.MessageCreateParamsNonStreaming) => Promise<Anthropic.Message>,
): Promise<string> {
  const client = clientOf(endpoint);
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: REQUEST }];
  const called: string[] = [];
  for (;;) {
    const body = { model: endpoint.model, messages, tools: MESSAGE_TOOLS };
    const counted = await client.messages.countTokens(body);
    const message = await complete(client, { ...body, max_tokens: 1000 });
    const { usage } = message;
    assert.equal(counted.input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
    messages.push({ role: "assistant", content: message.content });
    const results = message.content.filter((block) => block.type === "tool_use").map((call) => {
      called.push(call.name);
      return { type: "tool_result" as const, tool_use_id: call.id, content: runTool(call.name, call.input) };
    });
    if (results.length === 0) {
      assert.equal(message.stop_reason, "end_turn");
      assert.deepEqual(called, CALLS);
      return textOf(message);
    }
    assert.equal(message.stop_reason, "tool_use");
    // Results come in the order in which they are done.
    messages.push({ role: "user", content: results.reverse() });
  }
}

function textOf(message: { content: readonly { type: string }[] }): string {
  return message.content.flatMap((block) => "text" in block ? [String(block.text)] : []).join("");
}

Deno.test("anthropic: messages.create and countTokens", async () => {
  await trial((endpoint) => converse(endpoint, (client, body) => client.messages.create(body)), ECHOES);
});

Deno.test("anthropic: messages.stream", async () => {
  await trial(
    (endpoint) => converse(endpoint, (client, body) => client.messages.stream(body).finalMessage()),
    ECHOES,
  );
});

for (const stream of [false, true]) {
  Deno.test(`anthropic: beta.messages.toolRunner${stream ? ", streamed" : ""}`, async () => {
    await trial(async (endpoint) => {
      const tools = MESSAGE_TOOLS.map((tool) => ({
        ...tool,
        type: "custom" as const,
        parse: (input: unknown) => input,
        run: (input: unknown) => runTool(tool.name, input),
      }));
      const body = { model: endpoint.model, max_tokens: 1000, tools };
      const runner = clientOf(endpoint).beta.messages.toolRunner({
        ...body,
        messages: [{ role: "user", content: REQUEST }],
        stream,
      });
      return textOf(await runner.runUntilDone());
    }, ECHOES);
  });
}
