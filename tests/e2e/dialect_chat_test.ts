/** Chat completions beyond messages: logprobs that stream with their tokens, counts, roles, template settings, sampling fields. */

import assert from "node:assert/strict";
import { generate } from "../fixtures/engine_client.ts";
import { ask } from "./dialect_client.ts";
import { type Body, sharedHarness, user } from "./harness.ts";
import { think, tool, toolCall } from "./replies.ts";

const harness = sharedHarness({
  environment: { PASSTHROUGH_KEYS: "EMPTY" },
  engine: {
    script: {
      rules: [
        { match: "Plain", completions: ["Hello to you, and a good day."] },
        { match: "Think", completions: [think("One two three.") + "Four. " + toolCall("run", { path: "x" })] },
      ],
    },
  },
});

const CHAT = { path: "/v1/chat/completions" };

async function chunks(key: string, body: Record<string, unknown>): Promise<Body[]> {
  return await (await harness().stream(key, body)).rest();
}

Deno.test("logprobs stream with the text of their tokens", async () => {
  const { key } = await harness().createTask();
  const all = await chunks(key, { messages: [user("Plain")], logprobs: true });
  const [role, ...rest] = all;
  const finish = rest.pop();
  assert.equal(role.choices[0].logprobs, null);
  for (const { choices: [{ delta, logprobs }] } of rest) {
    assert.equal(logprobs.content.map((entry: Body) => entry.token).join(""), delta.content);
  }
  // The stop token says nothing: it comes with the finish reason.
  assert.deepEqual(finish.choices[0].logprobs.content.map((entry: Body) => entry.token), ["<|im_end|>"]);
});

Deno.test("logprobs of text that is held back come with what is said next", async () => {
  const { key, id } = await harness().createTask();
  const all = await chunks(key, { messages: [user("Think")], tools: [tool("run", ["path"])], logprobs: true });
  const entries = all.flatMap(({ choices: [choice] }) => choice?.logprobs?.content ?? []);
  const { body } = await harness().admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual(entries.map((entry: Body) => entry.logprob), body.result.logprobs);
  const call = all.find(({ choices: [choice] }) => choice?.delta.tool_calls !== undefined);
  const said = call.choices[0].logprobs.content.map((entry: Body) => entry.token).join("");
  assert.match(said, /^\s*<tool_call>\n.*\}\n<\/tool_call>$/s);
});

Deno.test("a replayed stream carries the logprobs, too", async () => {
  const { key } = await harness().createTask({ on_repeat: "replay" });
  const body = { messages: [user("Plain")], logprobs: true };
  const of = (all: Body[]) => all.flatMap(({ choices: [choice] }) => choice?.logprobs?.content ?? []);
  assert.deepEqual(of(await chunks(key, body)), of(await chunks(key, body)));
});

Deno.test("top_logprobs are the engine's own, whole and streamed, with the text and bytes of each token", async () => {
  for (const stream of [false, true]) {
    const { key } = await harness().createTask();
    const body = { messages: [user("Plain")], logprobs: true, top_logprobs: 3, return_token_ids: true };
    const answers = stream ? await chunks(key, body) : [(await harness().chat(key, body)).body];
    const entries: Body[] = answers.flatMap(({ choices: [choice] }) => choice?.logprobs?.content ?? []);
    const last = answers.at(-1);
    const prompt: number[] = last.prompt_token_ids;
    const completion: number[] = last.choices[0].token_ids;
    const direct = await generate(harness().development.engine, {
      input_ids: [...prompt, ...completion],
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      logprob_start_len: prompt.length - 1,
      top_logprobs_num: 3,
    });
    const wanted = direct.meta_info.input_top_logprobs!.slice(1).map((row) => row!.map(([logprob]) => logprob));
    assert.equal(entries.length, completion.length);
    assert.deepEqual(entries.map((entry) => entry.top_logprobs.map((top: Body) => top.logprob)), wanted);
    for (const { token, logprob, bytes, top_logprobs: top } of entries) {
      const same = top.find((likely: Body) => likely.token === token);
      if (same !== undefined) assert.deepEqual(same, { token, logprob, bytes });
    }
  }
});

Deno.test("top_logprobs are shown once: a replayed answer has its logprobs and no lists", async () => {
  const { key } = await harness().createTask({ on_repeat: "replay" });
  const body = { messages: [user("Plain")], logprobs: true, top_logprobs: 2 };
  const [first, again] = [await harness().chat(key, body), await harness().chat(key, body)];
  const shown = ({ body }: { body: Body }) => body.choices[0].logprobs.content;
  assert.ok(shown(first).every((entry: Body) => entry.top_logprobs.length === 2));
  assert.deepEqual(shown(again), shown(first).map((entry: Body) => ({ ...entry, top_logprobs: [] })));
});

Deno.test("usage counts what was cached, and the tokens inside reasoning", async () => {
  const { key, id } = await harness().createTask();
  const body = { messages: [user("Think")], tools: [tool("run", ["path"])] };
  const { usage, choices: [{ message }] } = await ask(harness(), key, body, CHAT);
  const { tokenizer } = harness().development;
  const reasoning = tokenizer.encode("\nOne two three.\n").length;
  assert.equal(usage.completion_tokens_details.reasoning_tokens, reasoning);
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "ok" };
  const messages = [user("Think"), message, result];
  const second = await ask(harness(), key, { ...body, messages, max_tokens: 4 }, CHAT);
  const turns = await harness().turns(id);
  assert.equal(second.usage.prompt_tokens_details.cached_tokens, turns[1].cached_tokens);
  assert.ok(turns[1].cached_tokens >= turns[0].prompt_tokens);
});

async function promptOf(body: Record<string, unknown>): Promise<string> {
  const answer = await ask(harness(), "EMPTY", { max_tokens: 1, return_token_ids: true, ...body }, CHAT);
  return harness().development.tokenizer.decode(answer.prompt_token_ids);
}

Deno.test("developer is system, lists of text are text, null and missing content are none", async () => {
  const text = (content: string) => [{ type: "text", text: content }];
  const call = { id: "call_0", type: "function", function: { name: "run", arguments: "{}" } };
  const plain = [
    { role: "system", content: "Be good." },
    user("Plain, please"),
    { role: "assistant", content: "", tool_calls: [call] },
    { role: "tool", tool_call_id: "call_0", content: "ok" },
  ];
  const other = [
    { role: "developer", content: text("Be good.") },
    { role: "user", content: [...text("Plain,"), ...text(" please")] },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_0", content: text("ok"), name: "run" },
  ];
  assert.equal(await promptOf({ messages: plain }), await promptOf({ messages: other }));
});

Deno.test("template settings reach the template, and make a prompt of their own", async () => {
  const messages = [user("Plain")];
  const thinking = await promptOf({ messages });
  const silent = await promptOf({ messages, chat_template_kwargs: { enable_thinking: false } });
  assert.equal(silent, `${thinking}<think>\n\n</think>\n\n`);
  const { key, id } = await harness().createTask();
  await ask(harness(), key, { messages }, CHAT);
  await ask(harness(), key, { messages, reasoning_effort: "low" }, CHAT);
  assert.deepEqual((await harness().turns(id)).map((turn) => turn.parent), [null, null]);
});

Deno.test("every sampling field reaches the engine where there is no task", async () => {
  const body = { messages: [user("Anything")], max_tokens: 6, return_token_ids: true, seed: 3 };
  const [one, two] = [await ask(harness(), "EMPTY", body, CHAT), await ask(harness(), "EMPTY", body, CHAT)];
  assert.deepEqual(one.choices[0].token_ids, two.choices[0].token_ids);
  const [first, second] = one.choices[0].token_ids;
  const stopped = await ask(harness(), "EMPTY", { ...body, stop_token_ids: [second] }, CHAT);
  assert.deepEqual(stopped.choices[0].token_ids, [first, second]);
  assert.equal(stopped.choices[0].finish_reason, "stop");
  const biased = await ask(harness(), "EMPTY", { ...body, logit_bias: { [second]: 100 } }, CHAT);
  assert.equal(biased.choices[0].token_ids[0], second);
  const greedy = await ask(harness(), "EMPTY", { ...body, temperature: 0, top_k: 1, top_p: 0.1, min_p: 0.5 }, CHAT);
  assert.equal(greedy.choices[0].token_ids.length, 6);
  const word = harness().development.tokenizer.decode([second]);
  const cut = await ask(harness(), "EMPTY", { ...body, stop: [word] }, CHAT);
  assert.deepEqual([cut.choices[0].finish_reason, cut.choices[0].matched_stop], ["stop", word]);
});

Deno.test("sampling fields that the task keeps to itself are listed", async () => {
  const { key, id } = await harness().createTask({ sampling: { agent_may_set: ["stop_token_ids"] } });
  await ask(harness(), key, {
    messages: [user("Plain")],
    stop_token_ids: [0],
    ignore_eos: true,
    min_tokens: 2,
    regex: "a+",
    custom_params: { a: 1 },
  }, CHAT);
  const [turn] = await harness().turns(id);
  assert.deepEqual(turn.ignored_fields.toSorted(), ["custom_params", "ignore_eos", "min_new_tokens", "regex"]);
  assert.ok(turn.sampling.stop_token_ids.includes(0));
});
