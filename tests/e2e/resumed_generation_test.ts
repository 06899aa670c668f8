/** Generations that the engine gives up in the middle: the agent sees one answer, and it is token by token what it would have been. */

import assert from "node:assert/strict";
import fc from "fast-check";
import { agentCalls, trained } from "./agent_calls.ts";
import { checkRowsByForceDecoding } from "./force_decode.ts";
import { type Body, sharedHarness, user } from "./harness.ts";
import { joinChunks } from "./join_chunks.ts";
import { think, tool, toolCall } from "./replies.ts";

const CALLS = think("Two at once.") + "On it. 世界 👋🏽\n" + toolCall("run", { path: "é.txt" }) + "\n" +
  toolCall("run", { path: "60.0" });

const harness = sharedHarness({
  environment: { ENGINE_RETRY_S: "5" },
  engine: {
    weightVersion: "1",
    script: {
      rules: [
        { match: "Work", completions: [CALLS] },
        { match: "Count", completions: ["One two three four five six seven eight nine ten."] },
      ],
    },
  },
});
const { result } = agentCalls(harness);

/** The engine gives the next calls up after so many tokens each. */
function abortAfter(counts: readonly number[]): void {
  const { faults } = harness().development.engine;
  faults.clear();
  counts.forEach((afterTokens, k) => {
    faults.add({ when: { nth: k + 1 }, fault: { kind: "abort", by: "user", afterTokens } });
  });
}

/** Aborts, each after a token at least: one before the first token is tried again by itself. */
const aborts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 5 });

Deno.test("with a seed, or greedily, a generation given up anywhere is the one it runs through: ids, logprobs, text, end", async () => {
  const { tokens: prompt } = (await harness().admin("POST", "/tokenize", { messages: [user("Free")] })).body;
  const generate = async (sampling_params: Record<string, unknown>, stream: boolean): Promise<Body> => {
    const body = { input_ids: prompt, sampling_params, stream };
    if (!stream) {
      const answered = await harness().admin("POST", "/generate", body);
      assert.equal(answered.status, 200, JSON.stringify(answered.body));
      return answered.body;
    }
    const response = await fetch(`${harness().url}/generate`, { method: "POST", body: JSON.stringify(body) });
    const frames = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: {"))
      .map((event): Body => JSON.parse(event.slice(6)));
    const { done, ...whole } = frames.pop()!;
    assert.equal(done, true);
    assert.deepEqual(frames.flatMap((frame) => frame.token_ids), whole.token_ids);
    assert.equal(frames.map((frame) => frame.text).join(""), whole.text);
    return whole;
  };
  const sampling = fc.oneof(
    fc.record({ sampling_seed: fc.integer({ min: 1, max: 1000 }) }),
    fc.constant({ temperature: 0 }),
    fc.record({ sampling_seed: fc.integer({ min: 1, max: 1000 }), temperature: fc.constant(0.7) }),
  );
  const property = fc.asyncProperty(sampling, aborts, fc.boolean(), fc.integer({ min: 1, max: 60 }), async (
    params,
    counts,
    stream,
    max_new_tokens,
  ) => {
    const asked = { ...params, max_new_tokens };
    abortAfter([]);
    const straight = await generate(asked, stream);
    abortAfter(counts);
    const resumed = await generate(asked, stream);
    assert.deepEqual({ ...resumed, usage: null }, { ...straight, usage: null });
    assert.deepEqual(resumed.usage.prompt_tokens, straight.usage.prompt_tokens);
  });
  await fc.assert(property, { numRuns: 60 });
  abortAfter([]);
});

Deno.test("an answer with reasoning, text and calls, given up anywhere, reaches the agent as one, and trains as one turn", async () => {
  const request = { messages: [user("Work")], tools: [tool("run")] };
  const ask = async (key: string, stream: boolean): Promise<Body> => {
    if (!stream) {
      const { status, body } = await harness().chat(key, request);
      assert.equal(status, 200, JSON.stringify(body));
      return body.choices[0].message;
    }
    const opened = await harness().stream(key, request);
    const frames = await opened.rest();
    assert.equal(opened.end, "done", JSON.stringify(frames.at(-1)));
    return joinChunks(frames).message;
  };
  const plain = (message: Body): unknown => ({
    ...message,
    tool_calls: message.tool_calls.map((call: Body) => call.function),
  });
  abortAfter([]);
  const straight = plain(await ask((await harness().createTask()).key, false));
  const property = fc.asyncProperty(aborts, fc.boolean(), async (counts, stream) => {
    const task = await harness().createTask();
    abortAfter(counts);
    assert.deepEqual(plain(await ask(task.key, stream)), straight);
    const [turn, ...others] = await harness().turns(task.id);
    assert.deepEqual([others, turn.finish_reason, turn.resumed], [[], "tool_calls", counts.length]);
    assert.deepEqual(turn.weight_versions, [{ version: "1", start: 0, end: turn.completion_tokens, exact: true }]);
    assert.equal(trained(await result(task))[0]!.length, turn.completion_tokens);
    const { rows } = await result(task, "?format=rows");
    const { engine } = harness().development.services.models.default;
    assert.equal(await checkRowsByForceDecoding(engine, rows), turn.completion_tokens);
  });
  await fc.assert(property, { numRuns: 25 });
  abortAfter([]);
});

Deno.test("a stop string that was under way begins anew where nothing was shown, and fails in the stream else, with the reason", async () => {
  const request = { messages: [user("Count")], stop: [" seven eight"] };
  const counted = "One two three four five six";
  const sevens = async (): Promise<number> => {
    const text = "One two three four five six seven";
    return (await harness().admin("POST", "/tokenize", { prompt: text })).body.tokens.length;
  };
  const task = await harness().createTask({ sampling: { agent_may_set: ["stop"] } });
  const at = await sevens();
  abortAfter([at]);
  const whole = await harness().chat(task.key, request);
  assert.deepEqual([whole.status, whole.body.choices[0].message.content], [200, counted]);
  const [turn] = await harness().turns(task.id);
  assert.deepEqual([turn.resumed, turn.stop], [0, " seven eight"]);
  abortAfter([at]);
  const stream = await harness().stream(task.key, request);
  const frames = await stream.rest();
  const { error } = frames.at(-1);
  assert.deepEqual([stream.end, error.code], ["broken", "engine_failed"]);
  assert.match(error.message, /a stop string was under way/);
  abortAfter([at - 2]);
  const later = await harness().chat(task.key, request);
  assert.equal(later.body.choices[0].message.content, counted);
  const turns = await harness().turns(task.id);
  assert.deepEqual(turns.map(({ resumed }: Body) => resumed), [0, 1]);
  abortAfter([]);
});

Deno.test("with a grammar, or penalties, a generation begins anew, and nothing of the first try is kept", async () => {
  const schema = { type: "object", properties: { answer: { type: "string", enum: ["yes", "no"] } } };
  const grammar = { response_format: { type: "json_schema", json_schema: { name: "a", schema } } };
  for (const fields of [grammar, { presence_penalty: 0.5 }]) {
    const task = await harness().createTask({ sampling: { agent_may_set: ["presence_penalty", "json_schema"] } });
    // Either says more than three tokens: the grammar's answer, and the script that a penalty does not stop.
    const request = { messages: [user("Count")], max_tokens: 12, ...fields };
    abortAfter([3, 3]);
    const { status, body } = await harness().chat(task.key, request);
    assert.equal(status, 200, JSON.stringify(body));
    const [turn] = await harness().turns(task.id);
    assert.equal(turn.resumed, 0);
    assert.equal(turn.completion_tokens, body.usage.completion_tokens);
    abortAfter([3]);
    const stream = await harness().stream(task.key, request);
    const error = (await stream.rest()).at(-1).error;
    assert.match(error.message, /more than its tokens decides how it goes on/);
    assert.equal((await harness().turns(task.id)).length, 1);
  }
  abortAfter([]);
});

Deno.test("with on_abort fail nothing is committed, whatever was sampled", async () => {
  const task = await harness().createTask({ on_abort: "fail" });
  for (const stream of [false, true]) {
    abortAfter([4]);
    const opened = await harness().stream(task.key, { messages: [user("Count")], stream });
    await opened.rest();
    assert.equal(opened.end === "done", false);
    assert.equal((await harness().task(task.id)).turns, 0);
  }
  abortAfter([]);
});
