/** Creating and listing tasks. */

import assert from "node:assert/strict";
import { type Body, movableClock, sharedHarness, user } from "./harness.ts";

const clock = movableClock();

const harness = sharedHarness({
  parts: { clock },
  engine: { script: { rules: [{ match: "Hello", completions: ["Hello to you.", "Good again."] }] } },
});

const hello = { messages: [user("Hello")] };

Deno.test("POST /tasks answers with the task's id, key, addresses and end", async () => {
  const before = clock.now();
  const { status, body } = await harness().admin("POST", "/tasks", { task_id: "shapes:1", ttl_s: 100 });
  assert.equal(status, 201);
  assert.deepEqual(Object.keys(body).sort(), ["anthropic_base_url", "api_key", "base_url", "expires_at", "task_id"]);
  assert.equal(body.task_id, "shapes:1");
  assert.match(body.api_key, /^vk_[\w-]{43}$/);
  assert.equal(body.base_url, `${harness().url}/v1`);
  assert.equal(body.anthropic_base_url, harness().url);
  const endsInMs = Date.parse(body.expires_at) - before;
  assert.ok(endsInMs >= 100_000 && endsInMs < 130_000);
});

Deno.test("POST /tasks takes every field, and GET shows what was set", async () => {
  const fields = {
    task_id: "every.field_1-a:b",
    group_id: "group of every field",
    rollout_id: 7,
    parent_task_id: "parent",
    routing_key: "route",
    model: "any name",
    metadata: { seed: 1, nested: { list: [1, "a", null, true] } },
    ttl_s: 3600,
    max_turns: 5,
    max_total_tokens: 10_000,
    max_context_tokens: 1000,
    capture: true,
    history: "branch",
    echo: "lenient",
    on_repeat: "replay",
    reasoning_history: "keep",
    main: { header: { "x-agent": "main" }, tools_include: "run", system_includes: "You are" },
    sampling: { fixed: { temperature: 0.7, top_p: 0.9, stop: ["END"] }, agent_may_set: ["sampling_seed"] },
    train_roles: ["main"],
    score: "off",
    on_abort: "fail",
    max_version_span: 2,
    capture_extras: [],
  };
  const { status, body } = await harness().admin("POST", "/tasks", fields);
  assert.equal(status, 201, JSON.stringify(body));
  await harness().chat(body.api_key, { ...hello, temperature: 0.1, seed: 3 });
  const task = await harness().task(body.task_id);
  const shown = {
    task_id: fields.task_id,
    status: "open",
    group_id: fields.group_id,
    rollout_id: 7,
    parent_task_id: "parent",
    model: "any name",
    history: "branch",
    echo: "lenient",
    metadata: fields.metadata,
    outcome: null,
    cause: null,
    reward: null,
    turns: 1,
    in_flight: 0,
  };
  for (const [name, value] of Object.entries(shown)) assert.deepEqual(task[name], value, name);
  assert.deepEqual(task.capture, { valid: true, reason: null, provisional: true });
  const [turn] = await harness().turns(body.task_id);
  assert.deepEqual(turn.basis, {
    temperature: 0.7,
    top_p: 0.9,
    top_k: -1,
    min_p: 0,
    penalties: false,
    constrained: false,
  });
  assert.deepEqual(turn.sampling.stop, ["END"]);
  assert.equal(turn.sampling.sampling_seed, 3);
  assert.deepEqual(turn.ignored_fields, ["temperature"]);
});

Deno.test("POST /tasks without an echo takes the policy's: lenient under append_only, strict under branch", async () => {
  const echoOf = async (fields: Record<string, unknown>) =>
    (await harness().task((await harness().createTask(fields)).id)).echo;
  assert.equal(await echoOf({}), "lenient");
  assert.equal(await echoOf({ history: "branch" }), "strict");
  assert.equal(await echoOf({ history: "append_only", echo: "strict" }), "strict");
});

Deno.test("POST /tasks refuses an id in use, whatever became of the task, until it has expired", async () => {
  const create = () => harness().admin("POST", "/tasks", { task_id: "taken", ttl_s: 1000 });
  assert.equal((await create()).status, 201);
  const refuse = async () => {
    const { status, body } = await create();
    assert.equal(status, 409);
    assert.equal(body.error.code, "task_exists");
    assert.equal(body.error.details.task_id, "taken");
  };
  await refuse();
  await harness().admin("POST", "/tasks/taken/finish", {});
  await refuse();
  await harness().admin("DELETE", "/tasks/taken");
  await refuse();
  clock.forward(1_000_000);
  assert.equal((await create()).status, 201);
});

Deno.test("POST /tasks with the same Idempotency-Key gives the same task and key", async () => {
  const create = (key: string, fields: Record<string, unknown>) =>
    harness().admin("POST", "/tasks", fields, { "idempotency-key": key });
  const [first, second] = [await create("once", { task_id: "idem" }), await create("once", { task_id: "idem" })];
  assert.equal(first.status, 201);
  assert.deepEqual(second.body, first.body);
  const [third, fourth] = [await create("twice", {}), await create("twice", {})];
  assert.deepEqual(fourth.body, third.body);
  assert.notEqual(third.body.task_id, first.body.task_id);
  const other = await create("other", { task_id: "idem" });
  assert.equal(other.status, 409);
  const bad = await create("a\tb", {});
  assert.equal(bad.body.error.details.field, "Idempotency-Key");
});

Deno.test("two creations at once with one Idempotency-Key are one task", async () => {
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => harness().admin("POST", "/tasks", {}, { "idempotency-key": "crowd" })),
  );
  assert.deepEqual(new Set(answers.map(({ body }) => body.task_id)).size, 1);
  assert.deepEqual(new Set(answers.map(({ body }) => body.api_key)).size, 1);
});

Deno.test("GET /tasks lists a group page by page, each task once", async () => {
  const ids: string[] = [];
  for (let k = 0; k < 7; k++) ids.push((await harness().createTask({ group_id: "pages" })).id);
  await harness().createTask({ group_id: "pages-2" });
  const listed: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body }: { status: number; body: Body } = await harness().admin(
      "GET",
      `/tasks?group_id=pages&limit=3${query}`,
    );
    assert.equal(status, 200);
    assert.ok(body.tasks.length <= 3);
    listed.push(...body.tasks.map((task: Body) => task.task_id));
    cursor = body.cursor;
    pages++;
  } while (cursor !== null && pages < 10);
  assert.deepEqual(listed.toSorted(), ids.toSorted());
});

Deno.test("GET /tasks filters by status", async () => {
  const group = "statuses";
  const [open, finished, dropped] = [
    await harness().createTask({ group_id: group }),
    await harness().createTask({ group_id: group }),
    await harness().createTask({ group_id: group }),
  ];
  const expired = await harness().createTask({ group_id: group, ttl_s: 5 });
  clock.forward(5000);
  await harness().admin("POST", `/tasks/${finished.id}/finish`, { reward: 0.5 });
  await harness().admin("DELETE", `/tasks/${dropped.id}`);
  const listed = async (status: string) => {
    const { body } = await harness().admin("GET", `/tasks?group_id=${group}&status=${status}`);
    return body.tasks.map((task: Body) => task.task_id);
  };
  assert.deepEqual(await listed("open"), [open.id]);
  assert.deepEqual(await listed("finished"), [finished.id]);
  assert.deepEqual(await listed("dropped"), [dropped.id]);
  assert.deepEqual(await listed("expired"), [expired.id]);
  assert.deepEqual(await listed("closing"), []);
});

Deno.test("GET /tasks refuses a cursor that can be none of its own", async () => {
  const { status, body } = await harness().admin("GET", "/tasks?cursor=!*");
  assert.equal(status, 400, JSON.stringify(body));
  assert.equal(body.error.code, "invalid_request");
  assert.equal(body.error.details.field, "cursor");
});
