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
        const running = (): number[] => gateway.workers.map(({ engine }) => engine.running);
        const calls: { agent: RoutedAgent; hangUp: () => void; ended: Promise<unknown>; worker: number }[] = [];
        for (const k of [0, 1, 2]) {
          const agent = await RoutedAgent.open(gateway, `Job ${k}, say: one two three four five six seven`);
          const before = running();
          const leaving = new AbortController();
          const ended = fetch(`${gateway.url}/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${agent.task.key}` },
            body: JSON.stringify({ ...agent.request, stream }),
            signal: leaving.signal,
          }).then((response) => response.text()).catch((cause: unknown) => cause);
          await gateway.workersRun(k + 1);
          const worker = running().findIndex((count, at) => count > before[at]!);
          calls.push({ agent, hangUp: () => leaving.abort(), ended, worker });
        }
        for (const { agent, hangUp, worker } of calls) {
          const left = running().map((count, at) => at === worker ? count - 1 : count);
          hangUp();
          await until("its worker runs one less, and the others what they ran", () => `${running()}` === `${left}`);
          await until("no call of it is in flight", async () => (await gateway.task(agent.task.id)).in_flight === 0);
          assert.equal((await gateway.task(agent.task.id)).turns, 0);
        }
        for (const { ended } of calls) assert.ok(await ended instanceof DOMException);
        for (const { engine } of gateway.workers) engine.faults.clear();
        for (const { agent } of calls) {
          await agent.turns(gateway, 2);
          await assertPromise(gateway, agent.task);
        }
      },
    );
  }
});
