/** What a result says beside its sample. */

import assert from "node:assert/strict";
import { startHarness, user } from "./harness.ts";

const TOOLS = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

Deno.test("a history begun anew from another first message is noted: the sample is not the whole rollout", async () => {
  await using harness = await startHarness();
  const { id, key } = await harness.createTask();
  const begin = { tools: TOOLS, max_tokens: 4 };
  await harness.chat(key, { ...begin, messages: [user("The job")] });
  await harness.chat(key, { ...begin, messages: [user("Summary of what was done; go on")] });
  const { body } = await harness.admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual([body.reason, body.notes, body.other_rows], [null, ["another_root_went_on"], 1]);
});

Deno.test("a side call after the main line's end is not noted", async () => {
  await using harness = await startHarness();
  const { id, key } = await harness.createTask();
  await harness.chat(key, { tools: TOOLS, max_tokens: 4, messages: [user("The job")] });
  await harness.chat(key, { max_tokens: 4, messages: [user("A title for this, please")] });
  const { body } = await harness.admin("POST", `/tasks/${id}/finish`, {});
  assert.deepEqual([body.reason, body.notes], [null, []]);
});

Deno.test("a key that looks like a task's opens no task of its own", async () => {
  await using harness = await startHarness({ environment: { TASK_AUTOCREATE: "on" } });
  const { key } = await harness.createTask();
  const body = { max_tokens: 4, messages: [user("Hello")] };
  assert.equal((await harness.chat(`${key}x`, body)).status, 401);
  assert.equal((await harness.chat("any-key", body)).status, 200);
});
