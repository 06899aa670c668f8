/** Without an admin key, on loopback: everyone is admin but an agent. */

import assert from "node:assert/strict";
import { sharedHarness } from "./harness.ts";

const harness = sharedHarness();

Deno.test("without an admin key own endpoints are open, but not to a task's key", async () => {
  const { id, key } = await harness().createTask();
  assert.equal((await harness().admin("GET", `/tasks/${id}`)).status, 200);
  assert.equal((await harness().admin("GET", `/tasks/${id}`, undefined, { authorization: "Bearer any" })).status, 200);
  for (const path of [`/tasks/${id}`, "/tasks", `/tasks/${id}/result`]) {
    const answer = await harness().admin("GET", path, undefined, { authorization: `Bearer ${key}` });
    assert.equal(answer.status, 403);
    assert.equal(answer.body.error.code, "forbidden");
  }
  const finished = await harness().admin("POST", `/tasks/${id}/finish`, { reward: 1 }, { "x-api-key": key });
  assert.equal(finished.status, 403);
  assert.equal((await harness().task(id)).status, "open");
});
