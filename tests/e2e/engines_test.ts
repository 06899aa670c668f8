/** The trainer's hand on the engines: seen, paused, updated, continued, while agents wait and none of them fails. */

import assert from "node:assert/strict";
import { type Body, sharedHarness, startHarness, user } from "./harness.ts";
import { joinChunks } from "./join_chunks.ts";
import { until } from "./until.ts";

const harness = sharedHarness({
  services: { keepAliveMs: 20 },
  environment: { PASSTHROUGH_KEYS: "EMPTY" },
  engine: { weightVersion: "1", script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
});

const hello = { messages: [user("Hello")] };

async function update(body: Record<string, unknown>): Promise<Body> {
  const answered = await harness().admin("POST", "/engines/update", body);
  assert.equal(answered.status, 200, JSON.stringify(answered.body));
  assert.ok(answered.body.ok);
  return answered.body;
}

async function model(): Promise<Body> {
  const { status, body } = await harness().admin("GET", "/engines");
  assert.equal(status, 200);
  assert.equal(body.models.length, 1);
  return body.models[0];
}

Deno.test("GET /engines shows models, their queue and their workers", async () => {
  const { name } = harness().development.services.models.default;
  const { workers, ...rest } = await model();
  assert.deepEqual(rest, {
    model: name,
    paused: false,
    queue: { running: 0, waiting: 0, limit: 4096 },
    new_task_budget: null,
    told_version: null,
    reason: null,
  });
  const [worker, ...others] = workers;
  assert.deepEqual(others, []);
  assert.deepEqual(
    [worker.url, worker.reachable, worker.weight_version, worker.up_to_date, worker.running, worker.queued],
    [harness().development.served.url, true, "1", null, 0, 0],
  );
});

Deno.test("while paused every kind of call waits, streams with keep-alives, and is answered once the engines go on", async () => {
  const { id, key } = await harness().createTask();
  const { url } = harness().development.served;
  assert.deepEqual(await update({ action: "pause" }), {
    action: "pause",
    model: harness().development.services.models.default.name,
    ok: true,
    paused: true,
    results: [{ url, ok: true, status: 200, message: "Generation paused successfully." }],
  });
  const stream = await harness().stream(key, hello);
  await stream.comment();
  await stream.comment();
  const others = [
    harness().chat("EMPTY", hello),
    harness().admin("POST", "/generate", hello),
  ];
  await until("all wait", () => harness().development.services.models.default.generations.gate.waiting === 3);
  const { paused, queue } = await model();
  assert.deepEqual([paused, queue.running, queue.waiting], [true, 0, 3]);
  const ready = await harness().admin("GET", "/readyz");
  assert.deepEqual([ready.status, ready.body.models[0].paused], [200, true]);
  const metrics = await (await fetch(`${harness().url}/metrics`)).text();
  assert.match(metrics, /verbatim_engine_paused\{model="[^"]+"\} 1\n/);
  assert.match(metrics, /verbatim_generations\{model="[^"]+",state="waiting"\} 3\n/);
  await update({ action: "update_from_disk", model_path: "/weights/2" });
  await update({ action: "set_version", new_version: "2" });
  assert.equal((await update({ action: "continue" })).paused, false);
  assert.equal(joinChunks(await stream.rest()).message.content, "Hello to you.");
  assert.equal(stream.end, "done");
  for (const answered of await Promise.all(others)) assert.equal(answered.status, 200, JSON.stringify(answered.body));
  const [turn] = await harness().turns(id);
  assert.deepEqual([turn.weight_versions.map(({ version, exact }: Body) => [version, exact]), turn.resumed], [
    [["2", true]],
    0,
  ]);
  assert.ok(turn.wait_ms >= 40, `waiting is not the engine's time: ${turn.wait_ms}`);
});

Deno.test("a client that hangs up while it waits leaves the queue, and a task that is finished takes its calls along", async () => {
  const { gate } = harness().development.services.models.default.generations;
  const [gone, finished] = [await harness().createTask(), await harness().createTask()];
  await update({ action: "pause" });
  const stream = await harness().stream(gone.key, hello);
  await stream.comment();
  const call = harness().chat(finished.key, hello);
  await until("both wait", () => gate.waiting === 2);
  stream.hangUp();
  await until("one has left", () => gate.waiting === 1);
  const closed = await harness().admin("POST", `/tasks/${finished.id}/finish`, { wait_s: 0 });
  assert.equal(closed.body.reason, "nothing was generated");
  assert.equal((await call).status, 503);
  assert.equal(gate.waiting, 0);
  await update({ action: "continue" });
  assert.equal((await harness().chat(gone.key, hello)).status, 200);
});

Deno.test("new tasks are taken within the budget of an update, and then refused until there is another", async () => {
  await update({ action: "set_version", new_version: "3", new_task_budget: 1 });
  const { status } = await harness().admin("POST", "/tasks", { task_id: "budgeted" }, { "idempotency-key": "k1" });
  assert.equal(status, 201);
  assert.equal((await model()).new_task_budget, 0);
  const refused = await harness().admin("POST", "/tasks", {});
  assert.equal(refused.status, 429);
  assert.deepEqual([refused.body.error.code, refused.body.error.details.reason], ["busy", "staleness budget"]);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  await update({ action: "set_version", new_version: "3", new_task_budget: 2 });
  const again = await harness().admin("POST", "/tasks", { task_id: "budgeted" }, { "idempotency-key": "k1" });
  assert.equal(again.status, 201, "the same answer again costs nothing");
  assert.equal((await harness().admin("POST", "/tasks", { task_id: "budgeted" })).status, 409);
  assert.equal((await model()).new_task_budget, 2);
  await update({ action: "flush", new_task_budget: null });
  assert.equal((await model()).new_task_budget, null);
  await harness().createTask();
});

Deno.test("POST /engines/update takes each action's own fields and no others", async () => {
  const bad: [Record<string, unknown>, string, string][] = [
    [{}, "invalid_request", "action"],
    [{ action: "restart" }, "invalid_request", "action"],
    [{ action: "pause", mode: "soft" }, "invalid_request", "mode"],
    [{ action: "pause", model_path: "x" }, "unknown_field", "model_path"],
    [{ action: "continue", mode: "abort" }, "unknown_field", "mode"],
    [{ action: "update_from_disk" }, "invalid_request", "model_path"],
    [{ action: "set_version", new_version: 3 }, "invalid_request", "new_version"],
    [{ action: "flush", new_task_budget: -1 }, "invalid_request", "new_task_budget"],
  ];
  for (const [body, code, field] of bad) {
    const answered = await harness().admin("POST", "/engines/update", body);
    assert.deepEqual(
      [answered.status, answered.body.error.code, answered.body.error.details.field],
      [400, code, field],
      JSON.stringify(body),
    );
  }
  assert.equal((await model()).paused, false);
});

Deno.test("the engines are the admin's alone", async () => {
  await using locked = await startHarness({ environment: { VERBATIM_ADMIN_KEY: "secret" } });
  const admin = { authorization: "Bearer secret" };
  const { body: task } = await locked.admin("POST", "/tasks", {}, admin);
  const statusOf = async (method: string, path: string, headers = {}) =>
    (await locked.admin(method, path, method === "POST" ? { action: "flush" } : undefined, headers)).status;
  for (const [method, path] of [["GET", "/engines"], ["POST", "/engines/update"]] as const) {
    assert.equal(await statusOf(method, path), 401);
    assert.equal(await statusOf(method, path, { authorization: `Bearer ${task.api_key}` }), 403);
    assert.equal(await statusOf(method, path, admin), 200);
  }
});

Deno.test("workers that fail an action are named in the error, and nothing is rolled back", async () => {
  await using lone = await startHarness({ engine: { script: { rules: [] } } });
  assert.equal((await lone.admin("POST", "/engines/update", { action: "pause" })).status, 200);
  await lone.development.served.refuse();
  const failed = await lone.admin("POST", "/engines/update", { action: "continue" });
  assert.equal(failed.status, 502);
  const { code, details } = failed.body.error;
  assert.deepEqual([code, details.action, details.ok, details.paused], ["engine_failed", "continue", false, true]);
  assert.deepEqual(details.results.map(({ ok, status }: Body) => [ok, status]), [[false, null]]);
  const { body } = await lone.admin("GET", "/engines");
  assert.deepEqual(body.models[0].workers.map((worker: Body) => worker.reachable), [false]);
  assert.equal(body.models[0].paused, true);
  lone.development.served.listen();
  assert.equal((await lone.admin("POST", "/engines/update", { action: "continue" })).body.paused, false);
});

Deno.test("calls past the limit wait their turn by task, and past the queue's are 429 in their dialect", async () => {
  await using small = await startHarness({
    environment: { ENGINE_MAX_CONCURRENCY: "1", ENGINE_MAX_QUEUE: "3" },
    engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
  });
  const { gate } = small.development.services.models.default.generations;
  const [greedy, modest] = [await small.createTask(), await small.createTask()];
  small.development.engine.faults.add({ when: { times: 1 }, fault: { kind: "hang", afterTokens: 1 } });
  const call = async (key: string) => assert.equal((await small.chat(key, hello)).status, 200);
  const running = await small.stream(greedy.key, hello);
  await small.engineRuns(1);
  const waiting: Promise<void>[] = [];
  for (const key of [greedy.key, greedy.key, modest.key]) {
    waiting.push(call(key));
    await until("the call waits", () => gate.waiting === waiting.length);
  }
  const refused = await small.chat(modest.key, { messages: [user("Hello again")] });
  assert.deepEqual([refused.status, refused.body.error.code], [429, "busy"]);
  assert.equal(refused.headers.get("x-should-retry"), "true");
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  running.hangUp();
  await Promise.all(waiting);
  const began = async (id: string) =>
    (await small.turns(id)).map(({ started_at: at, wait_ms: waitedMs }) => Date.parse(at) + waitedMs);
  const [first, last] = await began(greedy.id);
  const [between] = await began(modest.id);
  assert.ok(first! <= between! && between! <= last!, `${first}, ${between}, ${last}`);
  assert.deepEqual([gate.running, gate.waiting], [0, 0]);
});

Deno.test("a worker that missed an update is seen, and so are the turns that it samples", async () => {
  await using own = await startHarness({
    engine: { weightVersion: "1", script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] } },
  });
  const toldOf = async () => (await own.admin("GET", "/engines")).body.models[0];
  assert.equal((await own.admin("POST", "/engines/update", { action: "set_version", new_version: "2" })).status, 200);
  const { key } = await own.createTask();
  assert.equal((await own.chat(key, hello)).status, 200);
  assert.deepEqual([(await toldOf()).told_version, (await toldOf()).workers[0].up_to_date], ["2", true]);
  // As after a restart from its first weights.
  const { url } = own.development.served;
  await fetch(`${url}/update_weight_version`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ new_version: "1" }),
  });
  assert.equal((await toldOf()).workers[0].up_to_date, false);
  const metric = async () =>
    /verbatim_turns_of_other_weights_total (\d+)/.exec(await (await fetch(`${own.url}/metrics`)).text())?.[1];
  assert.equal(await metric(), "0");
  assert.equal((await own.chat(key, { messages: [user("Hello, once more")] })).status, 200);
  assert.equal(await metric(), "1");
});

Deno.test("an update of a model that there is not is refused", async () => {
  const refused = await harness().admin("POST", "/engines/update", { action: "pause", model: "other" });
  assert.deepEqual([refused.status, refused.body.error.code], [404, "model_not_found"]);
  assert.equal((await model()).paused, false);
});
