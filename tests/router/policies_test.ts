/** Where a task's turns run, by the router's policy, and that the promise holds wherever they ran. */

import assert from "node:assert/strict";
import { assertCached, assertPromise, RoutedAgent } from "./agents.ts";
import { startRoutedGateway } from "./routed_gateway.ts";
import type { RouterOptions } from "./router_process.ts";
import { testOnRouters } from "./test_on_routers.ts";

const STICKY: readonly RouterOptions[] = [
  { policy: "manual", flags: ["--assignment-mode=min_group"] },
  { policy: "consistent_hashing" },
];

testOnRouters("policies", (router) => {
  for (const options of STICKY) {
    Deno.test(`${router.package}, ${options.policy}: a task stays on one worker, several tasks are on several`, async () => {
      await using gateway = await startRoutedGateway(router, options);
      const agents = await Promise.all(
        Array.from({ length: 12 }, (_, k) => RoutedAgent.open(gateway, `Task ${k}: say something`)),
      );
      const lines = await Promise.all(agents.map((agent) => agent.turns(gateway, 3)));
      for (const turns of lines) {
        assert.equal(new Set(turns.map(({ worker }) => worker)).size, 1);
        assertCached(turns);
      }
      assert.ok(new Set(lines.map(([first]) => first?.worker)).size > 1);
      for (const { task } of agents) assert.equal((await assertPromise(gateway, task)).result.turns.length, 3);
    });

    Deno.test(`${router.package}, ${options.policy}: tasks with one routing key share a worker and its cache`, async () => {
      await using gateway = await startRoutedGateway(router, options);
      const workers = new Set();
      for (let k = 0; k < 4; k++) {
        const agent = await RoutedAgent.open(gateway, "The same long beginning for all of them", {
          routing_key: "family",
        });
        const turn = await agent.turn(gateway);
        workers.add(turn.worker);
        if (k > 0) assert.equal(turn.cachedTokens, turn.promptIds.length - 1);
      }
      assert.equal(workers.size, 1);
    });
  }

  Deno.test(`${router.package}, cache_aware: a task stays where most of its prompt is known, and no key spreads the samples of one prompt`, async () => {
    await using gateway = await startRoutedGateway(router, { policy: "cache_aware" });
    const prompt = `Solve this. ${"There is a folder with many files in it. ".repeat(12)}`;
    const agents = await Promise.all(Array.from({ length: 4 }, () => RoutedAgent.open(gateway, prompt)));
    const workers = new Set();
    for (const agent of agents) {
      const turns = await agent.turns(gateway, 3);
      assertCached(turns);
      for (const { worker } of turns) workers.add(worker);
      await assertPromise(gateway, agent.task);
    }
    assert.equal(workers.size, 1);
  });
});
