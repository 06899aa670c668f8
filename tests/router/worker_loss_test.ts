/** Workers that go away and come back while agents work: every agent ends well, and what is exported was sampled so. */

import assert from "node:assert/strict";
import { type Heard, RetryingClient } from "../e2e/retrying_agent.ts";
import { until } from "../e2e/until.ts";
import { assertHeard, assertPromise, RoutedAgent } from "./agents.ts";
import { type RoutedGateway, type RoutedWorker, startRoutedGateway } from "./routed_gateway.ts";
import type { RouterOptions } from "./router_process.ts";
import { testOnRouters } from "./test_on_routers.ts";

const POLICIES: readonly RouterOptions[] = [
  { policy: "manual", flags: ["--assignment-mode=min_group"] },
  { policy: "consistent_hashing" },
  { policy: "cache_aware" },
];
/** Slow enough that requests are in flight when something happens. */
const SLOW = { tokenDelayMs: 10 };
const AGENTS = 8;
const TURNS = 4;

/** Every other agent streams. */
function streams(agent: number): boolean {
  return agent % 2 === 0;
}

/** Agents as their clients have it: a failed call is tried again until it is answered. */
class Team {
  readonly heard: Heard[][];
  readonly #agents: readonly RoutedAgent[];
  readonly #client: RetryingClient;

  private constructor(agents: readonly RoutedAgent[], gateway: RoutedGateway) {
    this.#agents = agents;
    this.heard = agents.map(() => []);
    this.#client = new RetryingClient({
      url: () => gateway.url,
      signal: AbortSignal.timeout(60_000),
      mayFailInStream: true,
    });
  }

  static async open(gateway: RoutedGateway): Promise<Team> {
    const agents = Array.from({ length: AGENTS }, (_, k) => RoutedAgent.open(gateway, `Job ${k}: begin`));
    return new Team(await Promise.all(agents), gateway);
  }

  /** So many turns of each. */
  work(turns: number): Promise<unknown> {
    const working = Promise.all(this.#agents.map(async (agent, k) => {
      for (let turn = 0; turn < turns; turn++) {
        const heard = await this.#client.chat(agent.task.key, { ...agent.request, stream: streams(k) });
        this.heard[k]?.push(heard);
        agent.hear(heard.message);
      }
    }));
    // Whoever waits for it later hears of a failure then.
    working.catch(() => {});
    return working;
  }

  async assertPromises(gateway: RoutedGateway): Promise<void> {
    for (const [k, { task }] of this.#agents.entries()) {
      assertHeard(await assertPromise(gateway, task), this.heard[k] ?? []);
    }
  }
}

/** A worker that runs something, once there is one. */
async function busyWorker(gateway: RoutedGateway): Promise<RoutedWorker> {
  let busy: RoutedWorker | undefined;
  await until("a worker is busy", () => {
    busy = gateway.workers.find(({ engine }) => engine.running > 0);
    return busy !== undefined;
  });
  return busy!;
}

testOnRouters("workers that go and come", (router) => {
  // Its successor is tried with the policy that the README names.
  for (const options of router.package === "smg" ? POLICIES.slice(0, 1) : POLICIES) {
    const what = `${router.package}, ${options.policy}`;

    Deno.test(`${what}: a worker dies under load and comes back, and every agent ends well`, async () => {
      await using gateway = await startRoutedGateway(router, { ...options, engine: SLOW });
      const team = await Team.open(gateway);
      const working = team.work(TURNS);
      const victim = await busyWorker(gateway);
      await victim.served.refuse();
      await gateway.router.untilHealthy(victim.url, false);
      await working;
      // Half of them had seen nothing yet of the answer that broke off: the gateway asked for it anew.
      assert.ok(team.heard.every((turns, k) => streams(k) || turns.every(({ attempts }) => attempts === 1)));
      victim.served.listen();
      await gateway.router.untilHealthy(victim.url, true);
      await team.work(1);
      await gateway.workersIdle();
      await team.assertPromises(gateway);
    });

    Deno.test(`${what}: a worker is drained: what it runs ends there, and the next turns run elsewhere`, async () => {
      await using gateway = await startRoutedGateway(router, { ...options, engine: SLOW });
      const team = await Team.open(gateway);
      const working = team.work(1);
      const drained = await busyWorker(gateway);
      await gateway.router.remove(drained.url);
      await working;
      assert.ok(team.heard.flat().every(({ attempts }) => attempts === 1));
      const asked = drained.asked.length;
      await team.work(2);
      assert.equal(drained.asked.length, asked);
      assert.ok(team.heard.flat().every(({ attempts }) => attempts === 1));
      await gateway.router.add(drained.url);
      await team.assertPromises(gateway);
    });
  }
});
