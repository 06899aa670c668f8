/** Topology B: a trainer's loop over two workers and a teacher, with an update of the weights between two steps. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import type { Engine } from "../../shared/ports/engine.ts";
import { type Body, type GatewayClient, gatewayClient } from "../e2e/gateway_client.ts";
import { until } from "../e2e/until.ts";
import { finishAndCheck, workerAt } from "./check_task.ts";
import { startTopology } from "./start_topology.ts";
import { runAgent } from "./stock_agent.ts";

const ATTEMPTS = 8;
const WORKERS = [30001, 30002];
const TOLERANCE = 1e-6;

/** One step of a trainer: a group of attempts, their rewards, advantages, teacher scores and samples. */
async function step(gateway: GatewayClient, engines: { worker: Engine; teacher: Engine }, version: string) {
  const group_id = `step-${version}`;
  const rollouts = await Promise.all(Array.from({ length: ATTEMPTS }, async (_, k) => {
    const { id, key } = await gateway.createTask({ group_id });
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
    const { heard } = await runAgent(client, { job: "Read the README.", stream: k % 2 === 0 });
    return { id, heard, reward: k % 2 };
  }));
  for (const rollout of rollouts) await finishAndCheck(gateway.admin, engines.worker, rollout);

  const rows = rollouts.map(({ id, reward }) => ({ group_id, rollout_id: id, reward }));
  const normalized = await gateway.admin("POST", "/tasks/rewards/normalize", { rows, strategy: "grpo", std: "none" });
  assert.deepEqual(
    normalized.body.rows.map(({ rollout_id, advantage }: Body) => [rollout_id, advantage]),
    rollouts.map(({ id, reward }) => [id, reward - 0.5]),
  );

  const scoring = await fetch(`${gateway.url}/teacher-score/tasks`, {
    method: "POST",
    body: JSON.stringify({ group_id, top_k: 4 }),
  });
  const summary = JSON.parse((await scoring.text()).trimEnd().split("\n").at(-1) ?? "");
  assert.deepEqual([summary.done, summary.scored, summary.failed], [true, ATTEMPTS, 0]);

  for (const { id, heard, reward } of rollouts) {
    const { body } = await gateway.admin("GET", `/tasks/${id}/result?format=slime`);
    const [sample, ...more] = body.samples;
    assert.deepEqual([more, sample.reward, sample.rollout_id, sample.status], [[], reward, id, "completed"]);
    assert.deepEqual(sample.weight_versions, [version]);
    const sampled = sample.tokens.slice(-sample.response_length)
      .filter((_: number, k: number) => sample.loss_mask[k] === 1);
    assert.deepEqual(sampled, heard.flat());
    await assertTeacher(sample, engines.teacher);
  }
}

/** What the sample has of the teacher is what the teacher itself says of its tokens. */
async function assertTeacher(sample: Body, teacher: Engine): Promise<void> {
  const tokens = Uint32Array.from(sample.tokens);
  const at = tokens.length - sample.response_length;
  const scores = await teacher.score({
    rid: crypto.randomUUID().replaceAll("-", ""),
    prompt: tokens.slice(0, at),
    response: tokens.slice(at),
  }, AbortSignal.timeout(60_000));
  for (const [k, logprob] of sample.teacher_log_probs.entries()) {
    if (sample.loss_mask[k] === 1) assert.ok(Math.abs(logprob - scores[k]!) <= TOLERANCE, `token ${k}`);
    else assert.equal(logprob, 0);
  }
  assert.equal(sample.teacher_topk_indices.length, sample.response_length);
  assert.ok(sample.teacher_topk_indices.every((ids: number[]) => ids.length === 4));
}

Deno.test("one machine: two steps of a trainer over two workers and a teacher, the weights changed between them", async () => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const topology = stack.use(await startTopology("B", { places: { "verbatim.sqlite": `${folder}/verbatim.sqlite` } }));
  const gateway = gatewayClient(topology.url(8787));
  const engines = { worker: await workerAt(topology.url(30001)), teacher: await workerAt(topology.url(30003)) };
  const update = async (body: Record<string, unknown>): Promise<Body> => {
    const { status, body: report } = await gateway.admin("POST", "/engines/update", body);
    assert.deepEqual([status, report.ok], [200, true], JSON.stringify(report));
    assert.deepEqual(report.results.map(({ url }: Body) => url), WORKERS.map((port) => topology.url(port)));
    return report;
  };
  // It changes nothing; its hits count the requests of each worker.
  for (const port of WORKERS) {
    const rule = { when: { scoring: false }, fault: { kind: "delay", firstTokenMs: 0 } };
    const { ok } = await fetch(`${topology.url(port)}/faults`, { method: "POST", body: JSON.stringify(rule) });
    assert.ok(ok);
  }
  const hits = () =>
    Promise.all(WORKERS.map(async (port): Promise<number> => {
      const listed: Body = await (await fetch(`${topology.url(port)}/faults`)).json();
      return listed.faults[0].hits;
    }));

  await step(gateway, engines, "1");

  const { id, key } = await gateway.createTask();
  await update({ action: "pause" });
  const waiting = gateway.chat(key, { messages: [{ role: "user", content: "Hello" }], max_tokens: 16 });
  await until(
    "the call waits",
    async () => (await gateway.admin("GET", "/engines")).body.models[0].queue.waiting === 1,
  );
  await update({ action: "set_version", new_version: "2" });
  await update({ action: "continue" });
  assert.equal((await waiting).status, 200);
  const [turn] = await gateway.turns(id);
  assert.deepEqual(turn.weight_versions.map(({ version }: Body) => version), ["2"]);

  await step(gateway, engines, "2");
  assert.ok((await hits()).every((count) => count > 0), "both workers sampled");
  assert.deepEqual(topology.errors(), []);
});
