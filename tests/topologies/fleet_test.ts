/** Topology D: agents before a balancer before three gateways on one database, one of which is killed while they work. */

import assert from "node:assert/strict";
import OpenAI from "openai";
import { createDatabase, testOnPostgres } from "../contracts/postgres_harness.ts";
import { type Body, gatewayClient } from "../e2e/gateway_client.ts";
import { until } from "../e2e/until.ts";
import { testOnRouters } from "../router/test_on_routers.ts";
import { startBalancer } from "./balancer.ts";
import { finishAndCheck, workerAt } from "./check_task.ts";
import { startTopology, type TopologyOptions } from "./start_topology.ts";
import { runAgent } from "./stock_agent.ts";

const GATEWAYS = [8801, 8802, 8803] as const;
const VICTIM = 8802;
const AGENTS = 8;
/** How often a call may meet the gateway that is gone. */
const RETRIES = 20;

testOnPostgres("a fleet", (database) => {
  let databases = 0;

  /** Runs the agents through it, and checks that nothing is lost. */
  async function loseNothing(block: string, router?: TopologyOptions["router"]): Promise<void> {
    const url = await createDatabase(database().server, `fleet_${databases++}`);
    await using stack = new AsyncDisposableStack();
    let targets: readonly string[] = [];
    const balancer = stack.use(startBalancer(() => targets));
    const topology = stack.use(
      await startTopology(block, {
        places: { "postgres://verbatim:secret@127.0.0.1:5432/verbatim": url, "http://127.0.0.1:8787": balancer.url },
        ...(router === undefined ? {} : { router }),
      }),
    );
    targets = GATEWAYS.map((port) => topology.url(port));
    for (const target of targets) {
      await until(`${target} is ready`, async () => {
        const response = await fetch(`${target}/readyz`);
        await response.body?.cancel();
        return response.ok;
      });
    }
    const front = gatewayClient(balancer.url);
    const created = await front.admin("POST", "/tasks", {});
    assert.equal(created.body.base_url, `${balancer.url}/v1`);

    const all = Promise.withResolvers<void>();
    let begun = 0;
    const runs = await Promise.all(Array.from({ length: AGENTS }, async (_, k) => {
      const { id, key } = await front.createTask({ task_id: `agent-${k}` });
      const client = new OpenAI({ baseURL: `${balancer.url}/v1`, apiKey: key, maxRetries: RETRIES });
      const { heard } = await runAgent(client, {
        job: `Look around, agent ${k}.`,
        stream: k % 2 === 0,
        streamRetries: RETRIES,
        // Every agent has had its first answer when the gateway dies, and goes on meanwhile.
        async onTurn(turn) {
          if (turn !== 1) return;
          if (++begun === AGENTS) {
            all.resolve();
            await topology.kill(VICTIM);
          }
          await all.promise;
        },
      });
      return { id, heard, reward: k };
    }));
    assert.equal(balancer.served.size, AGENTS);
    assert.ok(
      [...balancer.served.values()].some(({ size }) => size > 1),
      "a task's turns came through several gateways",
    );

    // The balancer's own check would have taken it out by now.
    targets = targets.filter((target) => target !== topology.url(VICTIM));
    const worker = await workerAt(topology.url(30001));
    for (const run of runs) await finishAndCheck(front.admin, worker, run);
    const { body: listed } = await front.admin("GET", "/tasks?status=finished&limit=100");
    assert.equal(listed.tasks.length, AGENTS);
    await updateWeights(balancer.url, targets);
    assert.deepEqual(topology.errors(), []);
  }

  Deno.test("fleet without a router: three gateways, each choosing among the workers, lose nothing when one is killed", () =>
    loseNothing("D-workers"));

  testOnRouters("a fleet", ({ python, package: name }) => {
    if (name !== "sglang-router") return;
    const launcher = new URL("../router/launch_router.py", import.meta.url).pathname;
    Deno.test("fleet: three gateways behind a balancer and before a router lose nothing when one is killed", () =>
      loseNothing("D", [python, launcher, "sglang_router"]));
  });
});

/** Every gateway has its own gate: a trainer tells each of them. Agents' calls wait at whichever they came to. */
async function updateWeights(front: string, targets: readonly string[]): Promise<void> {
  const gateways = targets.map(gatewayClient);
  const tell = async (body: Record<string, unknown>): Promise<void> => {
    for (const { admin } of gateways) {
      const { status, body: report } = await admin("POST", "/engines/update", body);
      assert.deepEqual([status, report.ok, report.results.length], [200, true, 2], JSON.stringify(report));
    }
  };
  const { createTask, chat, turns } = gatewayClient(front);
  const tasks = await Promise.all(targets.map(() => createTask()));
  await tell({ action: "pause" });
  const calls = tasks.map(({ key }) => chat(key, { messages: [{ role: "user", content: "Hello" }], max_tokens: 16 }));
  await until("a call waits at each gateway", async () => {
    const states = await Promise.all(gateways.map(({ admin }) => admin("GET", "/engines")));
    return states.every(({ body }) => body.models[0].paused && body.models[0].queue.waiting === 1);
  });
  await tell({ action: "set_version", new_version: "2" });
  await tell({ action: "continue" });
  for (const { status, body } of await Promise.all(calls)) assert.equal(status, 200, JSON.stringify(body));
  for (const { id } of tasks) {
    const [turn] = await turns(id);
    assert.deepEqual(turn.weight_versions.map(({ version }: Body) => version), ["2"]);
  }
}
