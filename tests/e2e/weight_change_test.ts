/** Weights that change while a turn is sampled. */

import assert from "node:assert/strict";
import { sharedHarness, user } from "./harness.ts";
import { TokenGate } from "./token_gate.ts";
import { until } from "./until.ts";

const gate = new TokenGate();

const harness = sharedHarness({
  engine: {
    ...gate.engine,
    weightVersion: "1",
    script: { rules: [{ match: "Hello", completions: ["Hello to you."] }] },
  },
});

Deno.test("a streamed turn whose weights changed on the way does not claim exact versions", async () => {
  const { id, key } = await harness().createTask();
  gate.close();
  const stream = await (async () => {
    const opened = harness().stream(key, { messages: [user("Hello")] });
    await until("the engine has the call", () => gate.waiting === 1);
    gate.step();
    await until("a token has left", () => gate.waiting === 1);
    gate.step();
    return await opened;
  })();
  await stream.next();
  await until("the engine waits again", () => gate.waiting === 1);
  const { url } = harness().development.served;
  const updated = await fetch(`${url}/update_weight_version`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ new_version: "2", abort_all_requests: false }),
  });
  assert.equal(updated.status, 200, await updated.text());
  gate.open();
  await stream.rest();
  const { result, notes } = (await harness().admin("POST", `/tasks/${id}/finish`, {})).body;
  const length = result.completion_token_ids.length;
  assert.deepEqual(
    result.weight_versions.map(({ version, exact }: { version: string; exact: boolean }) => [version, exact]),
    [["1", false], ["2", false]],
  );
  assert.deepEqual([result.weight_versions[0].start, result.weight_versions[1].end], [0, length]);
  assert.deepEqual(notes, ["mixed_versions"]);
});
