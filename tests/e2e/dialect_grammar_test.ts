/** Calls that must come and answers that must be JSON: enforced by the engine in every dialect, or refused. */

import assert from "node:assert/strict";
import { ask, post } from "./dialect_client.ts";
import { type Body, sharedHarness, startHarness, user } from "./harness.ts";

const harness = sharedHarness({ environment: { PASSTHROUGH_KEYS: "EMPTY" } });

const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city"],
};
const NAMES = ["look", "run"];
const messages = [user("Anything at all")];
const CHAT = { path: "/v1/chat/completions" };
const RESPONSES = { path: "/v1/responses" };
const MESSAGES = { path: "/v1/messages" };
const chat = {
  messages,
  max_tokens: 400,
  tools: NAMES.map((name) => ({ type: "function", function: { name, parameters: PARAMETERS } })),
};
const responses = {
  input: "Anything at all",
  max_output_tokens: 400,
  tools: NAMES.map((name) => ({ type: "function", name, parameters: PARAMETERS })),
};
const anthropic = {
  messages,
  max_tokens: 400,
  tools: NAMES.map((name) => ({ name, input_schema: PARAMETERS })),
};

/** One wish in each dialect; what comes back as names and arguments of calls. */
const FORCED: readonly (readonly [what: string, sending: { path: string }, body: Body, names: readonly string[]])[] = [
  ["chat, required", CHAT, { ...chat, tool_choice: "required" }, NAMES],
  ["chat, named", CHAT, { ...chat, tool_choice: { type: "function", function: { name: "run" } } }, ["run"]],
  ["Responses, required", RESPONSES, { ...responses, tool_choice: "required" }, NAMES],
  ["Responses, named", RESPONSES, { ...responses, tool_choice: { type: "function", name: "look" } }, ["look"]],
  [
    "Responses, allowed",
    RESPONSES,
    { ...responses, tool_choice: { type: "allowed_tools", mode: "required", tools: [] } },
    NAMES,
  ],
  ["Messages, any", MESSAGES, { ...anthropic, tool_choice: { type: "any" } }, NAMES],
  ["Messages, named", MESSAGES, { ...anthropic, tool_choice: { type: "tool", name: "run" } }, ["run"]],
];

/** The calls of an answer in any dialect. */
function callsOf(answer: Body): { name: string; input: Body }[] {
  const chatCalls = answer.choices?.[0].message.tool_calls ?? [];
  const items = (answer.output ?? []).filter((item: Body) => item.type === "function_call");
  const blocks = (answer.content ?? []).filter((block: Body) => block.type === "tool_use");
  return [
    ...chatCalls.map(({ function: called }: Body) => ({ name: called.name, input: JSON.parse(called.arguments) })),
    ...items.map((item: Body) => ({ name: item.name, input: JSON.parse(item.arguments) })),
    ...blocks.map(({ name, input }: Body) => ({ name, input })),
  ];
}

function textOf(answer: Body): string {
  return answer.choices?.[0].message.content ?? answer.output?.at(-1).content[0].text ?? answer.content[0].text;
}

function assertCalls(answer: Body, names: readonly string[]): void {
  const calls = callsOf(answer);
  assert.ok(calls.length >= 1, JSON.stringify(answer));
  for (const { name, input } of calls) {
    assert.ok(names.includes(name));
    assert.equal(typeof input.city, "string");
    assert.ok(Number.isInteger(input.days));
  }
}

for (const [what, sending, body, names] of FORCED) {
  Deno.test(`a forced call comes, and its turn's basis is constrained: ${what}`, async () => {
    assertCalls(await ask(harness(), "EMPTY", body, sending), names);
    const { key, id } = await harness().createTask();
    assertCalls(await ask(harness(), key, body, sending), names);
    const [turn] = await harness().turns(id);
    assert.equal(turn.basis.constrained, true);
    assert.ok(!turn.ignored_fields.includes("tool_choice"));
    assert.equal(JSON.parse(turn.sampling.structural_tag).type, "structural_tag");
  });
}

const SCHEMA = {
  type: "object",
  properties: { verdict: { enum: ["yes", "no"] }, reason: { type: "string" } },
  required: ["verdict", "reason"],
  additionalProperties: false,
};

const STRUCTURED: readonly (readonly [what: string, sending: { path: string }, body: Body])[] = [
  [
    "chat",
    CHAT,
    { messages, response_format: { type: "json_schema", json_schema: { name: "v", schema: SCHEMA, strict: true } } },
  ],
  [
    "Responses",
    RESPONSES,
    { input: "Anything", text: { format: { type: "json_schema", name: "v", schema: SCHEMA, strict: true } } },
  ],
  [
    "Messages",
    MESSAGES,
    { messages, max_tokens: 300, output_config: { format: { type: "json_schema", schema: SCHEMA } } },
  ],
];

function assertVerdict(answer: Body): void {
  const value = JSON.parse(textOf(answer));
  assert.ok(["yes", "no"].includes(value.verdict));
  assert.equal(typeof value.reason, "string");
}

for (const [what, sending, body] of STRUCTURED) {
  Deno.test(`an answer follows a schema, and its turn's basis is constrained: ${what}`, async () => {
    assertVerdict(await ask(harness(), "EMPTY", body, sending));
    const { key, id } = await harness().createTask();
    assertVerdict(await ask(harness(), key, body, sending));
    const [turn] = await harness().turns(id);
    assert.deepEqual([turn.basis.constrained, JSON.parse(turn.sampling.json_schema)], [true, SCHEMA]);
  });
}

Deno.test("a schema that the engine can't enforce is refused, not failed, streamed or not", async () => {
  const schema = { type: "string", pattern: "a+" };
  for (const [, sending, body] of STRUCTURED) {
    for (const stream of [false, true]) {
      const { status, headers, body: refused } = await post(harness(), "EMPTY", {
        ...JSON.parse(JSON.stringify(body).replaceAll(JSON.stringify(SCHEMA), JSON.stringify(schema))),
        stream,
      }, sending);
      assert.deepEqual([status, refused.error.code, headers.get("x-should-retry")], [400, "unsupported", "false"]);
      assert.match(refused.error.message, /pattern/);
    }
  }
});

Deno.test("JSON mode is an object", async () => {
  const answer = await ask(harness(), "EMPTY", { messages, response_format: { type: "json_object" } }, CHAT);
  assert.equal(typeof JSON.parse(textOf(answer)), "object");
});

Deno.test("beside tools, an answer is a call or follows the schema", async () => {
  const format = { type: "json_schema", json_schema: { name: "v", schema: SCHEMA } };
  for (let k = 0; k < 8; k++) {
    const body = { ...chat, messages: [user(`Anything ${k}`)], response_format: format };
    const answer = await ask(harness(), "EMPTY", body, CHAT);
    if (callsOf(answer).length > 0) assertCalls(answer, NAMES);
    else assertVerdict(answer);
  }
});

Deno.test("sampled logprobs of a forced answer are those of its basis, and the capture says that bases are mixed", async () => {
  const { key, id } = await harness().createTask();
  const one = await ask(harness(), key, { ...chat, tool_choice: "required" }, CHAT);
  const [{ message }] = one.choices;
  const results = message.tool_calls.map((call: Body) => ({ role: "tool", tool_call_id: call.id, content: "ok" }));
  await ask(harness(), key, { ...chat, messages: [...messages, message, ...results], max_tokens: 5 }, CHAT);
  const { body: result } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual(result.result.turns.map((turn: Body) => turn.basis.constrained), [true, false]);
  assert.ok(result.notes.includes("mixed_basis"));
});

Deno.test("a model whose calls no grammar knows refuses forced calls", async () => {
  await using served = await startHarness({
    environment: { TOOL_CALL_PARSER: "glm45", PASSTHROUGH_KEYS: "EMPTY" },
  });
  for (const key of ["EMPTY", (await served.createTask()).key]) {
    const { status, body } = await post(served, key, { ...chat, tool_choice: "required" }, CHAT);
    assert.deepEqual([status, body.error.code, body.error.param], [400, "unsupported", "tool_choice"]);
    assert.match(body.error.message, /glm45/);
  }
});

Deno.test("a prompt that opens reasoning lets it end before the forced call", async () => {
  await using served = await startHarness({
    environment: { PASSTHROUGH_KEYS: "EMPTY", CHAT_TEMPLATE: await templateThatThinks() },
  });
  const body = { ...chat, tool_choice: "required" };
  const answer = await ask(served, "EMPTY", body, CHAT);
  assertCalls(answer, NAMES);
  assert.ok(answer.usage.completion_tokens_details.reasoning_tokens >= 0);
  const structured = await ask(served, "EMPTY", STRUCTURED[0]![2], CHAT);
  assertVerdict(structured);
});

/** The packaged template, its generation prompt ending in an open reasoning block. */
async function templateThatThinks(): Promise<string> {
  const { services } = harness().development;
  const source = services.models.default.renderer.tokenizer.chatTemplate ?? assert.fail("there is no template");
  const at = source.lastIndexOf("<|im_start|>assistant\\n");
  const path = await Deno.makeTempFile({ suffix: ".jinja" });
  await Deno.writeTextFile(path, source.slice(0, at) + "<|im_start|>assistant\\n<think>\\n" + source.slice(at + 23));
  return path;
}
