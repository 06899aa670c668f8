/**
 * Situations in which earlier gateways failed their users around the sampling, one test each; those about what was
 * sampled are in seed_faults_test.ts. The letter is the situation's, the name says what must happen.
 */

import assert from "node:assert/strict";
import type { Fault } from "../../shared/engine/fault.ts";
import { agentCalls, trained } from "./agent_calls.ts";
import {
  type Body,
  type CreatedTask,
  type Harness,
  movableClock,
  sharedHarness,
  startHarness,
  user,
} from "./harness.ts";

const harness = sharedHarness({ environment: { MAX_CONTEXT_LEN: "4096" } });
const { ask, result } = agentCalls(harness);

Deno.test("I: sampling is the task's: what an agent wishes otherwise is listed, and what it may set is recorded", async () => {
  const wishes = { temperature: 0.1, top_p: 0.5, top_k: 3, min_p: 0.2, presence_penalty: 1, max_tokens: 4 };
  const strict = await harness().createTask();
  await ask(strict, [user("Free")], wishes);
  const [turn] = await harness().turns(strict.id);
  const raw = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, penalties: false, constrained: false };
  assert.deepEqual(turn.basis, raw);
  assert.deepEqual(turn.ignored_fields.toSorted(), ["min_p", "presence_penalty", "temperature", "top_k", "top_p"]);
  assert.deepEqual([turn.sampling.temperature, turn.sampling.max_new_tokens], [1, 4]);

  const open = await harness().createTask({
    sampling: { fixed: { top_p: 0.9 }, agent_may_set: ["temperature"] },
  });
  await ask(open, [user("Free")], wishes);
  const [set] = await harness().turns(open.id);
  assert.deepEqual(set.basis, { ...raw, temperature: 0.1, top_p: 0.9 });
  assert.ok(!set.ignored_fields.includes("temperature") && set.ignored_fields.includes("top_p"));
});

Deno.test("J: keys that were not issued open nothing", async () => {
  const before = (await harness().admin("GET", "/tasks?limit=1000")).body.tasks.length;
  for (const key of ["EMPTY", "default", "dummy", "sk-anything", "", "Bearer", `vk_${"a".repeat(43)}`]) {
    const { status, body } = await harness().chat(key, { messages: [user("Free")] });
    assert.deepEqual([status, body.error.code], [401, "unauthorized"], key);
  }
  assert.equal((await harness().admin("GET", "/tasks?limit=1000")).body.tasks.length, before);
});

Deno.test("K: errors have the dialect's shape, and say whether to try again and when", async () => {
  const task = await harness().createTask({ max_turns: 1 });
  const overlong = { messages: [user("long ".repeat(5000))] };
  const closed = await harness().createTask();
  await harness().admin("POST", `/tasks/${closed.id}/finish`, {});
  const { faults } = harness().development.engine;
  const cases: readonly (readonly [key: string, body: Body, status: number, retry: string, fault?: Fault])[] = [
    ["nobody", { messages: [user("Free")] }, 401, "false"],
    [closed.key, { messages: [user("Free")] }, 503, "false"],
    [task.key, overlong, 400, "false"],
    [task.key, { messages: "no list" }, 400, "false"],
    [task.key, { messages: [user("Free")] }, 502, "true", { kind: "http", status: 500, body: "plain text" }],
    [task.key, { messages: [user("Free")] }, 503, "true", { kind: "http", status: 503, body: "" }],
  ];
  for (const [key, body, status, retry, fault] of cases) {
    if (fault !== undefined) faults.add({ fault });
    const answers = [await harness().chat(key, body), await messages(key, body)];
    faults.clear();
    for (const [k, answer] of answers.entries()) {
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.equal(answer.headers.get("x-should-retry"), retry);
      assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
      assert.equal(answer.headers.has("retry-after"), status === 503 && retry === "true");
      assert.equal(typeof answer.body.error.message, "string");
      assert.equal(typeof answer.body.error.type, "string");
      assert.equal(answer.body.type, k === 0 ? undefined : "error");
    }
  }
});

/** The same request in the other vendor's dialect. */
async function messages(key: string, body: Body): Promise<{ status: number; headers: Headers; body: Body }> {
  const response = await fetch(`${harness().url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": key, "anthropic-version": "2023-06-01", "content-type": "application/json" },
    body: JSON.stringify({ max_tokens: 100, ...body }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

Deno.test("N: an image is refused by name, never left out in silence", async () => {
  const task = await harness().createTask();
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const { status, body } = await harness().chat(task.key, {
    messages: [{ role: "user", content: [{ type: "text", text: "What is this?" }, image] }],
  });
  assert.deepEqual([status, body.error.code], [400, "unsupported"]);
  assert.match(body.error.message, /image/);
  assert.deepEqual(await harness().turns(task.id), []);
});

Deno.test("O: a process that starts on the same file goes on where the last one stopped", async () => {
  const folder = await Deno.makeTempDir();
  const environment = { KV_PATH: `${folder}/tasks.sqlite` };
  const begin = async (gateway: Harness, key: string, said: Body[]) => {
    const { body } = await gateway.chat(key, { messages: said, max_tokens: 6, return_token_ids: true });
    return body.choices[0];
  };
  try {
    const said = [user("Free")];
    let task: CreatedTask;
    let first: Body;
    {
      await using before = await startHarness({ environment });
      task = await before.createTask();
      first = await begin(before, task.key, said);
    }
    await using after = await startHarness({ environment });
    const second = await begin(after, task.key, [...said, first.message, user("More")]);
    const { body } = await after.admin("POST", `/tasks/${task.id}/finish`, { reward: 1 });
    assert.deepEqual(trained(body), [first.token_ids, second.token_ids]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("T: what is kept of tasks ends with them, however many there were", async () => {
  const clock = movableClock();
  await using own = await startHarness({ parts: { clock }, environment: { TASK_TTL_S: "60" } });
  const { store } = own.development.services;
  const uids: string[] = [];
  for (let k = 0; k < 20; k++) {
    const { id, key } = await own.createTask();
    await own.chat(key, { messages: [user("Free")], max_tokens: 2 });
    if (k % 2 === 0) await own.admin("POST", `/tasks/${id}/finish`, {});
    uids.push((await store.getTask(id))!.task.uid);
  }
  assert.equal((await own.admin("GET", "/tasks")).body.tasks.length, 20);
  clock.forward(61_000);
  assert.equal(await store.sweep(clock.now()), 20);
  assert.deepEqual((await own.admin("GET", "/tasks")).body.tasks, []);
  for (const uid of uids) {
    assert.deepEqual([await store.listEvents(uid), await store.listCalls(uid)], [[], []]);
  }
});

Deno.test("U: a sub-agent with a key of its own is a task of its own that names its parent, in one group", async () => {
  const parent = await harness().createTask({ group_id: "episode", rollout_id: "r1" });
  const child = await harness().createTask({ group_id: "episode", rollout_id: "r1", parent_task_id: parent.id });
  const outer = await ask(parent, [user("Free")], { max_tokens: 4 });
  const inner = await ask(child, [{ role: "system", content: "Help." }, user("Free")], { max_tokens: 4 });
  assert.equal((await harness().task(child.id)).parent_task_id, parent.id);
  const { body } = await harness().admin("GET", "/tasks?group_id=episode");
  assert.deepEqual(body.tasks.map((task: Body) => task.task_id).toSorted(), [child.id, parent.id].toSorted());
  for (const [task, { ids }] of [[parent, outer], [child, inner]] as const) {
    const region = await result(task);
    assert.deepEqual([trained(region), region.rollout_id], [[ids], "r1"]);
  }
});
