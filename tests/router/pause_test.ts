/** A pause of all workers, as for a weight update: calls hang and none fails, if the router's health checks let it be. */

import assert from "node:assert/strict";
import { until } from "../e2e/until.ts";
import { assertPromise, RoutedAgent } from "./agents.ts";
import { type RoutedGateway, startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

const AGENTS = 6;

/** Health checks that a pause does not fail: paused workers do not answer theirs. */
const PATIENT = ["--health-failure-threshold=1000"];

async function onAll({ workers }: RoutedGateway, path: string, body: unknown = {}): Promise<void> {
  await Promise.all(workers.map(async ({ url }) => {
    const response = await fetch(url + path, { method: "POST", body: JSON.stringify(body) });
    assert.equal(response.status, 200, await response.text());
  }));
}

testOnRouters("pauses", (router) => {
  for (const mode of ["in_place", "retract"]) {
    Deno.test(`${router.package}: all workers pause (${mode}), calls hang and new ones too, none fails, all end`, async () => {
      await using gateway = await startRoutedGateway(router, {
        policy: "manual",
        flags: PATIENT,
        engine: { tokenDelayMs: 5 },
      });
      const agents = await Promise.all(
        Array.from({ length: 2 * AGENTS }, (_, k) => RoutedAgent.open(gateway, `Job ${k}: begin`)),
      );
      const running = Promise.all(agents.slice(0, AGENTS).map((agent) => agent.turns(gateway, 4)));
      running.catch(() => {});
      await until("the workers work", () => gateway.workers.some(({ engine }) => engine.running > 0));
      await onAll(gateway, "/pause_generation", { mode });
      const waiting = Promise.all(agents.slice(AGENTS).map((agent) => agent.turns(gateway, 2)));
      waiting.catch(() => {});
      const inFlight = async (): Promise<number[]> =>
        await Promise.all(agents.map(async ({ task }) => (await gateway.task(task.id)).in_flight));
      await until("every agent waits for an answer", async () => (await inFlight()).every((count) => count === 1));
      const checks = gateway.workers.map((worker) => worker.checks());
      await until(
        "health checks have gone by in vain",
        () => gateway.workers.every((worker, k) => worker.checks() >= checks[k]! + 3),
      );
      assert.ok((await gateway.router.workers()).every(({ healthy }) => healthy));
      assert.deepEqual(await inFlight(), agents.map(() => 1));
      await onAll(gateway, "/update_weight_version", { new_version: "next", abort_all_requests: false });
      await onAll(gateway, "/continue_generation");
      await Promise.all([running, waiting]);
      for (const { task } of agents) await assertPromise(gateway, task);
    });
  }

  Deno.test(`${router.package}: with short health checks a pause empties the router; calls wait as long as ENGINE_RETRY_S says`, async () => {
    await using gateway = await startRoutedGateway(router, {
      policy: "manual",
      environment: { ENGINE_RETRY_S: "60" },
    });
    await onAll(gateway, "/pause_generation", { mode: "in_place" });
    for (const { url } of gateway.workers) await gateway.router.untilHealthy(url, false);
    const agent = await RoutedAgent.open(gateway, "Begin");
    const turning = agent.turn(gateway);
    turning.catch(() => {});
    const refused = await fetch(`${gateway.router.url}/generate`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input_ids: [1] }),
    });
    assert.deepEqual([refused.status, refused.headers.get("x-smg-error-code")], [503, "no_available_workers"]);
    await refused.body?.cancel();
    await onAll(gateway, "/continue_generation");
    await turning;
    await assertPromise(gateway, agent.task);
  });

  Deno.test(`${router.package}: a router without workers is a 503 that says when to come again`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual", environment: { ENGINE_RETRY_S: "1" } });
    await Promise.all(gateway.workers.map(({ url }) => gateway.router.remove(url)));
    const agent = await RoutedAgent.open(gateway, "Begin");
    const { status, headers, body } = await gateway.chat(agent.task.key, agent.request);
    assert.deepEqual([status, body.error.code], [503, "engine_unavailable"], JSON.stringify(body));
    assert.equal(headers.get("x-should-retry"), "true");
    assert.ok(Number(headers.get("retry-after")) >= 1);
    await gateway.router.add(gateway.workers[0]?.url ?? "");
    await agent.turns(gateway, 2);
    await assertPromise(gateway, agent.task);
  });
});
