/** Topology A: a harness is answered by the engine through the gateway's renderer and parser, and nothing is recorded. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import { type Body, type GatewayClient, gatewayClient } from "../e2e/gateway_client.ts";
import { completion, serveMockOpenAI } from "../fixtures/mock_openai.ts";
import { workerAt } from "./check_task.ts";
import { type StartedTopology, startTopology } from "./start_topology.ts";
import { runAgent } from "./stock_agent.ts";

let topology: StartedTopology;
let gateway: GatewayClient;

Deno.test.beforeAll(async () => {
  topology = await startTopology("A");
  gateway = gatewayClient(topology.url(8787));
});
Deno.test.afterAll(async () => {
  await topology[Symbol.asyncDispose]();
});

async function assertNothingKept(): Promise<void> {
  assert.deepEqual((await gateway.admin("GET", "/tasks")).body.tasks, []);
}

Deno.test("evaluation only: a tool loop of the stock client runs, whole and streamed, and no task comes of it", async () => {
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "EMPTY", maxRetries: 0 });
  for (const stream of [false, true]) {
    const { heard, says } = await runAgent(client, { job: "Look around.", stream });
    assert.deepEqual([heard.length, says], [3, "I have looked at the files and the README. The task is done."]);
  }
  const response = await client.responses.create({ model: "default", input: "Hello" });
  assert.equal(response.output_text, "Hello! What shall we do?");
  await assertNothingKept();
});

Deno.test("evaluation only: the harness's sampling holds, and what is answered is what the engine samples", async () => {
  const request = { messages: [{ role: "user", content: "Count." }], max_tokens: 24, temperature: 0 };
  const told = { ...request, return_token_ids: true, logprobs: true };
  const [first, second] = [await gateway.chat("EMPTY", told), await gateway.chat("EMPTY", told)];
  assert.equal(first.headers.get("x-verbatim-turn"), "none");
  assert.deepEqual(first.body.choices[0].token_ids, second.body.choices[0].token_ids, "greedy");

  const { body } = await gateway.chat("EMPTY", { ...told, temperature: 1 });
  const [choice] = body.choices;
  const worker = await workerAt(topology.url(30000));
  const scores = await worker.score({
    rid: crypto.randomUUID().replaceAll("-", ""),
    prompt: Uint32Array.from(body.prompt_token_ids),
    response: Uint32Array.from(choice.token_ids),
  }, AbortSignal.timeout(60_000));
  const said = choice.logprobs.content.map(({ logprob }: Body) => logprob);
  assert.equal(said.length, scores.length);
  for (const [k, logprob] of said.entries()) assert.ok(Math.abs(logprob - scores[k]!) <= 1e-6, `token ${k}`);
  await assertNothingKept();
});

Deno.test("evaluation only: another key is refused, and a task without capture keeps no token", async () => {
  const { status, body } = await gateway.chat("other", { messages: [{ role: "user", content: "Hello" }] });
  assert.deepEqual([status, body.error.code], [401, "unauthorized"]);

  const { id, key } = await gateway.createTask({ capture: false });
  const answer = await gateway.chat(key, { messages: [{ role: "user", content: "Hello" }] });
  assert.deepEqual([answer.status, answer.headers.get("x-verbatim-turn")], [200, "none"]);
  assert.deepEqual(await gateway.turns(id), []);
  const { body: finished } = await gateway.admin("POST", `/tasks/${id}/finish`, { reward: 1 });
  assert.deepEqual([finished.result, finished.reason, finished.reward], [null, "not captured", 1]);
  assert.deepEqual(topology.errors(), []);
});

Deno.test("evaluation only: a model of an OpenAI-compatible API is asked through the same gateway, and never recorded", async () => {
  await using api = serveMockOpenAI(() => completion({ content: "Well done." }));
  await using both = await startTopology("A-api", { places: { "http://127.0.0.1:9000": api.url } });
  const front = gatewayClient(both.url(8787));
  const client = new OpenAI({ baseURL: `${front.url}/v1`, apiKey: "EMPTY", maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Judge: hello" }];
  const judged = await client.chat.completions.create({ model: "judge", messages, temperature: 0 });
  assert.equal(judged.choices[0]?.message.content, "Well done.");
  const [asked] = api.requests;
  assert.deepEqual([asked?.body.model, asked?.body.temperature], ["gpt-4o-2024-11-20", 0]);
  assert.equal(asked?.headers.get("authorization"), "Bearer sk-...");

  const { says } = await runAgent(client, { job: "Look around." });
  assert.match(says, /The task is done/);
  assert.equal(api.requests.length, 1, "our own model is asked by any other name");

  const captured = await front.admin("POST", "/tasks", { model: "judge" });
  assert.equal(captured.status, 400, JSON.stringify(captured.body));
  assert.deepEqual((await front.admin("GET", "/tasks")).body.tasks, []);
  assert.deepEqual(both.errors(), []);
});
