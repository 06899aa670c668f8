/** Where the bytes of extras lie: the store, a folder, a bucket; how they go; and how trainers read them. */

import assert from "node:assert/strict";
import { routedExperts } from "../../shared/engine/routed_experts.ts";
import { S3_USER, serveS3 } from "../fixtures/s3_server.ts";
import { agentCalls } from "./agent_calls.ts";
import { type Body, type CreatedTask, type Harness, startHarness, user } from "./harness.ts";
import { play, startActors } from "./rollin_play.ts";
import { readSafetensors } from "./teacher.ts";
import { until } from "./until.ts";

const EXPERTS = { layers: 3, topK: 2, experts: 8 };
const ENGINE = { experts: EXPERTS, topPTokenIds: true, draftTokens: 2 };
const TASK = { capture_extras: ["routed_experts", "top_p_ids"], sampling: { fixed: { top_p: 0.8 } }, ttl_s: 60 };
const LATER_MS = 120_000;

/** Two turns of a task that captures experts and ids. */
async function talk(gateway: Harness, fields: Record<string, unknown> = {}): Promise<CreatedTask> {
  const task = await gateway.createTask({ ...TASK, ...fields });
  const { ask } = agentCalls(() => gateway);
  const first = [user("one")];
  const { message } = await ask(task, first, { max_tokens: 6 });
  await ask(task, [...first, message, user("two")], { max_tokens: 6 });
  return task;
}

async function regionOf(gateway: Harness, task: CreatedTask): Promise<Body> {
  return (await agentCalls(() => gateway).result(task)).result;
}

function assertExperts({ prompt_token_ids: prompt, completion_token_ids: completion, extras }: Body): void {
  const ids = Uint32Array.from([...prompt, ...completion]);
  const expected = routedExperts(ids, { from: 0, to: ids.length - 1 }, EXPERTS);
  assert.equal(extras.routed_experts.base64, new Uint8Array(expected.buffer).toBase64());
}

async function filesUnder(folder: string): Promise<number> {
  let files = 0;
  for await (const { isDirectory, name } of Deno.readDir(folder)) {
    files += isDirectory ? await filesUnder(`${folder}/${name}`) : 1;
  }
  return files;
}

Deno.test("extras beyond the limit lie in the folder, and go with their task: dropped, or expired", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const environment = { BLOB_PATH: folder, BLOB_LIMIT_BYTES: "100" };
    await using gateway = await startHarness({ engine: ENGINE, environment });
    const [dropped, expiring] = [await talk(gateway), await talk(gateway)];
    assertExperts(await regionOf(gateway, dropped));
    assert.equal((await Array.fromAsync(Deno.readDir(folder))).length, 2);
    assert.ok(await filesUnder(folder) >= 4);
    await gateway.admin("DELETE", `/tasks/${dropped.id}`);
    await until("the dropped task's files are gone", async () => {
      return (await Array.fromAsync(Deno.readDir(folder))).length === 1;
    });
    assertExperts(await regionOf(gateway, expiring));
    const { services } = gateway.development;
    assert.equal(await services.blobs.sweepOutside(services.clock.now()), 0);
    assert.equal(await services.blobs.sweepOutside(services.clock.now() + LATER_MS), 1);
    assert.equal(await filesUnder(folder), 0);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("extras lie in a bucket, and go with their task", async () => {
  await using server = serveS3();
  await using gateway = await startHarness({
    engine: ENGINE,
    environment: {
      BLOB_S3_URL: `${server.bucketUrl}/extras`,
      BLOB_S3_REGION: S3_USER.region,
      BLOB_S3_ACCESS_KEY_ID: S3_USER.accessKeyId,
      BLOB_S3_SECRET_ACCESS_KEY: S3_USER.secretAccessKey,
      BLOB_LIMIT_BYTES: "1",
    },
  });
  const task = await talk(gateway);
  assertExperts(await regionOf(gateway, task));
  assert.equal(server.objects.size, 4);
  await gateway.admin("DELETE", `/tasks/${task.id}`);
  await until("the dropped task's objects are gone", () => server.objects.size === 0);
});

Deno.test("without another place all of it lies in the store, whatever its size", async () => {
  await using gateway = await startHarness({ engine: ENGINE, environment: { BLOB_LIMIT_BYTES: "1" } });
  assertExperts(await regionOf(gateway, await talk(gateway)));
});

Deno.test("a place that can't be written leaves turns without extras, and agents with their answers", async () => {
  const file = await Deno.makeTempFile();
  try {
    const environment = { BLOB_PATH: file, BLOB_LIMIT_BYTES: "1" };
    await using gateway = await startHarness({ engine: ENGINE, environment });
    const region = await regionOf(gateway, await talk(gateway));
    assert.deepEqual(region.extras, { routed_experts: null, top_p_ids: null });
    assert.deepEqual(region.extras_missing.map(({ reason }: Body) => reason), ["not_kept", "not_kept"]);
    assert.equal(region.turns.length, 2);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("a start with half a place says which variable is missing", async () => {
  for (
    const [environment, message] of [
      [{ BLOB_PATH: "/tmp", BLOB_S3_URL: "http://127.0.0.1:1/b" }, /both set/],
      [{ BLOB_S3_URL: "http://127.0.0.1:1/b" }, /BLOB_S3_ACCESS_KEY_ID/],
      [{ BLOB_S3_URL: "http://127.0.0.1:1" }, /BLOB_S3_URL: must name a bucket/],
      [{ BLOB_LIMIT_BYTES: "none" }, /BLOB_LIMIT_BYTES/],
    ] as const
  ) await assert.rejects(startHarness({ environment }), { code: "not_ready", message });
});

Deno.test("tensors hold the same as JSON, a row of experts a position", async () => {
  await using gateway = await startHarness({ engine: ENGINE });
  const task = await talk(gateway);
  const { rows: [row] } = await agentCalls(() => gateway).result(task, "?format=rows");
  const answer = await fetch(`${gateway.url}/tasks/${task.id}/result?format=rows`, {
    headers: { accept: "application/x-safetensors" },
  });
  const { tensors, metadata } = readSafetensors(new Uint8Array(await answer.arrayBuffer()));
  const experts = tensors["row.0.routed_experts"]!;
  assert.deepEqual([experts.dtype, experts.shape], ["I32", [row.tokens.length - 1, 6]]);
  const values = new Int32Array(Uint8Array.fromBase64(row.extras.routed_experts.base64).buffer);
  assert.deepEqual(experts.values, [...values]);
  assert.deepEqual(tensors["row.0.top_p_ids"]!.values, row.extras.top_p_ids.ids);
  assert.deepEqual(tensors["row.0.top_p_offsets"]!.values, row.extras.top_p_ids.offsets);
  const [{ extras, extras_missing: missing }] = JSON.parse(metadata.verbatim!).rows;
  assert.deepEqual([extras, missing], [{}, []]);
});

/** As a trainer reads them. */
const SNIPPET = `
import base64, json, sys, urllib.request
import numpy
from safetensors.numpy import load

def get(query, **headers):
    request = urllib.request.Request(sys.argv[1] + "/result" + query, headers=headers)
    return urllib.request.urlopen(request).read()

tensors = load(get("", accept="application/x-safetensors"))
sample = json.loads(get("?format=slime"))["samples"][0]
experts = numpy.frombuffer(base64.b64decode(sample["rollout_routed_experts"]), dtype=numpy.int32)
experts = experts.reshape(len(sample["tokens"]) - 1, 3, 2)
assert (experts.reshape(len(experts), 6) == tensors["routed_experts"]).all()
offsets = sample["rollout_top_p_token_offsets"]
assert offsets[0] == 0 and offsets[-1] == len(sample["rollout_top_p_token_ids"])
assert len(offsets) == sample["response_length"] + 1
assert tensors["top_p_offsets"].tolist() == offsets
print(json.dumps([str(tensors["routed_experts"].dtype), experts.tolist()]))
`;

async function python(args: readonly string[]): Promise<string | null> {
  try {
    const { success, stdout } = await new Deno.Command("python3", { args: [...args], stderr: "null" }).output();
    return success ? new TextDecoder().decode(stdout) : null;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return null;
    throw thrown;
  }
}

Deno.test("Python reads experts and ids from tensors and from slime's samples alike", async (test) => {
  const looksFor = "import importlib.util as u; assert u.find_spec('safetensors') and u.find_spec('numpy')";
  if (await python(["-c", looksFor]) === null) {
    await test.step("skipped: python3 with safetensors and numpy is not here", () => {});
    return;
  }
  await using gateway = await startHarness({ engine: ENGINE });
  const task = await talk(gateway);
  const printed = await python(["-c", SNIPPET, `${gateway.url}/tasks/${task.id}`]);
  assert.ok(printed !== null);
  const { prompt_token_ids: prompt, completion_token_ids: completion } = await regionOf(gateway, task);
  const ids = Uint32Array.from([...prompt, ...completion]);
  const [type, experts] = JSON.parse(printed);
  assert.equal(type, "int32");
  assert.deepEqual(experts.flat(2), [...routedExperts(ids, { from: 0, to: ids.length - 1 }, EXPERTS)]);
});

Deno.test("the policy's experts cover a teacher's turns too, as soon as the policy goes on from them", async () => {
  await using taught = await startActors({ engine: ENGINE });
  const { gateway } = taught;
  const task = await gateway.createTask({ ...TASK, rollin: { prefix_turns: 2 } });
  await play(taught, task, { turns: 4 });
  const region = await regionOf(gateway, task);
  assert.deepEqual(region.turns.map(({ actor }: Body) => actor), ["teacher", "teacher", "policy", "policy"]);
  assertExperts(region);
  const { ids, offsets } = region.extras.top_p_ids;
  for (const { actor, start, end } of region.turns) {
    if (actor === "teacher") assert.equal(offsets[end], offsets[start]);
    else {
      for (let at = start; at < end; at++) {
        assert.ok(ids.slice(offsets[at], offsets[at + 1]).includes(region.completion_token_ids[at]));
      }
    }
  }
  const alone = await gateway.createTask({ ...TASK, rollin: { prefix_turns: 2 } });
  await play(taught, alone, { turns: 2 });
  const { extras, extras_missing: missing } = await regionOf(gateway, alone);
  assert.equal(extras.routed_experts, null);
  assert.deepEqual(missing, [{ extra: "routed_experts", turn: 1, reason: "not_sampled" }]);
});
