/** Agents that hang up: the router passes no abort on, so that the gateway tells the workers themselves. */

import assert from "node:assert/strict";
import { until } from "../e2e/until.ts";
import { assertPromise, RoutedAgent } from "./agents.ts";
import { startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

testOnRouters("agents that hang up", (router) => {
  Deno.test(`${router.package}: the router itself takes no abort`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "manual" });
    const { status, body } = await fetch(`${gateway.router.url}/abort_request`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ rid: "0".repeat(32) }),
    });
    await body?.cancel();
    assert.equal(status, 404);
  });

  for (const stream of [true, false]) {
    Deno.test(
      `${router.package}: a hang-up ${
        stream ? "in the middle of a stream" : "before the answer"
      } ends that generation on its worker, and no other`,
      async () => {
        await using gateway = await startRoutedGateway(router, {
          policy: "manual",
          flags: ["--assignment-mode=min_group"],
        });
        // Workers that notice no hang-up: nothing but an abort by id ends what they run.
        for (const { engine } of gateway.workers) engine.faults.add({ fault: { kind: "zombie", afterTokens: 4 } });
        const agents = await Promise.all([0, 1, 2].map((k) => RoutedAgent.open(gateway, `Job ${k}: begin`)));
        const leaving = agents.map(() => new AbortController());
        const calls = agents.map(async ({ task, request }, k) => {
          const response = await fetch(`${gateway.url}/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${task.key}` },
            body: JSON.stringify({ ...request, stream }),
            signal: leaving[k]!.signal,
          });
          return await response.text();
        });
        const ended = Promise.allSettled(calls);
        await until("each worker runs one", () => gateway.workers.every(({ engine }) => engine.running === 1));
        for (const [k, agent] of agents.entries()) {
          leaving[k]!.abort();
          await gateway.workersRun(agents.length - 1 - k);
          await until("no call of it is in flight", async () => (await gateway.task(agent.task.id)).in_flight === 0);
          assert.equal((await gateway.task(agent.task.id)).turns, 0);
        }
        assert.deepEqual((await ended).map(({ status }) => status), agents.map(() => "rejected"));
        for (const { engine } of gateway.workers) engine.faults.clear();
        for (const agent of agents) {
          await agent.turns(gateway, 2);
          await assertPromise(gateway, agent.task);
        }
      },
    );
  }
});
