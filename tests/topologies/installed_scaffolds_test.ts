/** Topology C: scaffolds in their own dialects share a gateway, each with its task's key, and each export is its own. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import { type Body, gatewayClient } from "../e2e/gateway_client.ts";
import { type Admin, finishAndCheck, workerAt } from "./check_task.ts";
import { startTopology } from "./start_topology.ts";
import { runAgent } from "./stock_agent.ts";

const ADMIN_KEY = "change-me";
const TOOL = { name: "bash", description: "Runs a command.", parameters: { type: "object" as const, properties: {} } };

/** What a scaffold is set up with. */
interface Created {
  readonly task_id: string;
  readonly api_key: string;
  readonly base_url: string;
  readonly anthropic_base_url: string;
}

/** Answers' texts in the order they came; the stock client over Responses, which is given a URL and no key of its own. */
async function runOverResponses(baseURL: string, job: string): Promise<string> {
  const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
  const input: Body[] = [{ role: "user", content: job }];
  for (;;) {
    const { output, output_text } = await client.responses.create({
      model: "default",
      input,
      tools: [{ type: "function", strict: false, ...TOOL }],
    });
    input.push(...output);
    const calls = output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return output_text;
    for (const { call_id } of calls) input.push({ type: "function_call_output", call_id, output: "README.md" });
  }
}

/** A scaffold over Messages, which sends its key as Anthropic's do. */
async function runOverMessages(baseUrl: string, key: string, job: string): Promise<string> {
  const messages: Body[] = [{ role: "user", content: job }];
  const { parameters: input_schema, ...tool } = TOOL;
  for (;;) {
    const response = await fetch(`${baseUrl}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json" },
      body: JSON.stringify({ model: "default", max_tokens: 200, messages, tools: [{ ...tool, input_schema }] }),
    });
    const { content, stop_reason }: Body = await response.json();
    assert.equal(response.status, 200);
    messages.push({ role: "assistant", content });
    if (stop_reason !== "tool_use") return content.at(-1).text;
    const calls = content.filter(({ type }: Body) => type === "tool_use");
    const results = calls.map(({ id }: Body) => ({ type: "tool_result", tool_use_id: id, content: "README.md" }));
    messages.push({ role: "user", content: results });
  }
}

Deno.test("installed scaffolds: three dialects at once, a key each, and each export is its own", async () => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const topology = stack.use(
    await startTopology("C", { places: { "verbatim.sqlite": `${folder}/verbatim.sqlite` } }),
  );
  const url = topology.url(8787);
  const worker = await workerAt(topology.url(30000));
  const client = gatewayClient(url);
  const admin: Admin = (method, path, body) =>
    client.admin(method, path, body, { authorization: `Bearer ${ADMIN_KEY}` });
  const create = async (id: string): Promise<Created> => {
    const { status, body } = await admin("POST", "/tasks", { task_id: id });
    assert.equal(status, 201, JSON.stringify(body));
    assert.deepEqual([body.base_url, body.anthropic_base_url], [`${url}/v1`, url]);
    return body;
  };
  const [chat, responses, messages] = [await create("chat"), await create("responses"), await create("messages")];

  const said = await Promise.all([
    runAgent(new OpenAI({ baseURL: chat.base_url, apiKey: chat.api_key }), { job: "Look: chat." })
      .then(({ says }) => says),
    runOverResponses(`${url}/k/${responses.api_key}/v1`, "Look: responses."),
    runOverMessages(messages.anthropic_base_url, messages.api_key, "Look: messages."),
  ]);
  assert.deepEqual(new Set(said), new Set(["I have looked at the files and the README. The task is done."]));

  const hello = { messages: [{ role: "user", content: "Hello" }] };
  assert.equal((await client.chat("foreign", hello)).status, 401);
  assert.equal((await client.admin("POST", "/k/foreign/v1/chat/completions", hello)).status, 401);
  for (const path of ["/tasks", "/tasks/messages/result", "/engines"]) {
    assert.equal((await client.admin("GET", path)).status, 401, path);
    const asked = await client.admin("GET", path, undefined, { authorization: `Bearer ${chat.api_key}` });
    assert.equal(asked.status, 403, path);
  }

  for (const { task_id } of [chat, responses, messages]) {
    const { body: { turns } } = await admin("GET", `/tasks/${task_id}/turns`);
    assert.equal(turns.length, 3, task_id);
    const region = await finishAndCheck(admin, worker, { id: task_id, reward: 1 });
    const prompt = (await admin("POST", "/detokenize", { tokens: region.result.prompt_token_ids })).body.text;
    assert.deepEqual(prompt.match(/Look: \w+/g), [`Look: ${task_id}`]);
  }
  assert.equal((await client.chat(chat.api_key, hello)).status, 503, "a finished task takes no calls");
  assert.deepEqual(topology.errors(), []);
});
