/** Prompts that are too long: refused before the router, whose circuit breaker would take them for failures of a worker. */

import assert from "node:assert/strict";
import { user } from "../e2e/harness.ts";
import { assertPromise, RoutedAgent } from "./agents.ts";
import { startRoutedGateway } from "./routed_gateway.ts";
import { testOnRouters } from "./test_on_routers.ts";

const CONTEXT = 256;
const PROMPTS = 10;
const SHORT = {
  policy: "manual",
  environment: { MAX_CONTEXT_LEN: String(CONTEXT) },
  engine: { maxContextTokens: CONTEXT },
} as const;

testOnRouters("prompts that are too long", (router) => {
  Deno.test(`${router.package}: ten over-long prompts are refused, none reaches a worker, and the next call works`, async () => {
    await using gateway = await startRoutedGateway(router, { ...SHORT, flags: [`--cb-failure-threshold=${PROMPTS}`] });
    const agent = await RoutedAgent.open(gateway, "Begin");
    const messages = [user("word ".repeat(2 * CONTEXT))];
    for (let k = 0; k < PROMPTS * gateway.workers.length; k++) {
      const { status, body } = await gateway.chat(agent.task.key, { messages });
      assert.deepEqual([status, body.error.code], [400, "context_length_exceeded"]);
    }
    assert.ok(gateway.workers.every(({ asked }) => asked.length === 0));
    await agent.turns(gateway, 2);
    await assertPromise(gateway, agent.task);
  });

  Deno.test(
    `${router.package}: ten over-long prompts sent to the router itself ${
      router.package === "smg" ? "do no harm" : "shut a worker out"
    }`,
    async () => {
      await using gateway = await startRoutedGateway(router, SHORT);
      const [worker, ...others] = gateway.workers;
      await Promise.all(others.map(({ url }) => gateway.router.remove(url)));
      const generate = async (tokens: number): Promise<number> => {
        const response = await fetch(`${gateway.router.url}/generate`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ input_ids: Array(tokens).fill(1000), sampling_params: { max_new_tokens: 1 } }),
        });
        await response.body?.cancel();
        return response.status;
      };
      for (let k = 0; k < PROMPTS; k++) assert.equal(await generate(2 * CONTEXT), 400);
      assert.equal(worker?.asked.length, PROMPTS);
      assert.equal(await generate(8), router.package === "smg" ? 200 : 503);
    },
  );
});
